"""Bounds that all workers share, and the rate that each worker takes of them."""

import time
from datetime import timedelta

import pytest

from rowferry.db.connection import connect
from rowferry_worker.monitoring import heartbeat
from rowferry_worker.monitoring.heartbeat import ClusterState, Heartbeat
from rowferry_worker.pacing.rate_limit import BURST_SECONDS, Bound, Turns
from support.entries.migration import Migration
from support.queue.queue_states import report_nothing


def test_turns_come_at_the_rate_whatever_is_asked_at_once_and_no_hour_is_caught_up_with() -> None:
    slow, bound = Turns(BURST_SECONDS), Bound(lambda: 10.0)
    assert [slow.reserve(100.0, 10.0) for _ in range(21)][-1] == pytest.approx(2.0 - BURST_SECONDS)
    assert slow.reserve(105.0, 10.0) == 0
    assert max(bound.reserve(100.0) for _ in range(21)) < 0.31, "what is further away is not taken"
    bounded = Turns(BURST_SECONDS)
    bounded.reserve(0.0, 10.0)
    assert [bounded.reserve(3600.0, 10.0) for _ in range(12)][-1] == pytest.approx(1.1 - BURST_SECONDS)


def test_a_bound_is_shared_out_evenly_among_the_live() -> None:
    assert ClusterState(size=4).share_of(1000.0) == 250.0
    assert ClusterState(size=0).share_of(1000.0) == 1000.0


def test_workers_hold_back_only_where_a_replica_is_further_behind_than_it_may_be() -> None:
    behind = ClusterState(replica_lag=timedelta(seconds=10))
    assert behind.is_behind(5.0)
    assert not behind.is_behind(15.0)
    assert not behind.is_behind(None)
    assert not ClusterState().is_behind(5.0)


def test_each_beat_tells_how_many_live(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    from rowferry_worker.ledger import Ledger

    monkeypatch.setattr(heartbeat, "HEARTBEAT_INTERVAL", timedelta(hours=1))  # only the test sends heartbeats
    ledger, cluster, heartbeats = Ledger("test"), ClusterState(), list[Heartbeat]()
    try:
        heartbeats = [
            Heartbeat(ledger, f"w{n}", ["migrate"], report_nothing, lambda: True, cluster, Event()) for n in range(3)
        ]
        for one in heartbeats:
            one.start()
        assert cluster.size == 3
        heartbeats[0].deregister()
        with connect("test", autocommit=True) as connection:
            connection.execute("update rowferry.worker set last_seen_at = now() - interval '1 hour' where id = 'w1'")
        heartbeats[2].send()
        assert cluster.size == 1
    finally:
        for one in heartbeats:
            one.deregister()
        ledger.close()


def test_no_second_sees_more_rows_than_the_bound_however_many_processes_work(migration: Migration) -> None:
    """From the first on: each of them would else begin with a batch of its own."""
    migration.fill(160)
    migration.plan["database"] = {"max_rows_per_second": 40}
    migration.enqueue(batch_size=10)
    with migration.workers(4):
        migration.wait_until_done()
    ended = migration.execute(
        "select sum(entry_count) over (order by finished_at)::int as rows, "
        "extract(epoch from finished_at - min(started_at) over ())::float as seconds from rowferry.batch_queue"
    )
    assert [batch for batch in ended if batch["rows"] > 40 * batch["seconds"]] == []


def test_a_bound_on_rows_and_requests_is_kept_and_all_is_migrated(versitygw_migration: Migration) -> None:
    migration = versitygw_migration
    migration.fill(40)
    migration.plan["production"]["max_requests_per_second"] = 100
    migration.plan["database"] = {"max_rows_per_second": 40}
    migration.enqueue(batch_size=10)
    began = time.monotonic()
    migration.work()
    seconds = time.monotonic() - began
    requests = 80  # a HEAD and a copy for each
    assert seconds >= (requests - 10) / 100 - 0.2
    assert seconds >= (40 - 10) / 40 - 0.2
    migration.audit()
