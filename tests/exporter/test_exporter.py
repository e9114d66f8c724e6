"""`rowferry exporter`: the whole queue in one scrape."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from rowferry_exporter import collector
from rowferry_exporter.collector import MIN_AGE, QueueCollector, QueueReading, is_fresh
from rowferry_exporter.metrics import describe
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.queue.queue_states import acting, missing

SESSIONS = "from pg_stat_activity where application_name = 'rowferry exporter'"
SCRIBBLING = """
create table public.scribbled (seconds float8);
create function public.scribble() returns float8 language sql
as 'insert into public.scribbled values (1) returning seconds';
create or replace view rowferry.oldest_transactions as select 'rowferry' as of, public.scribble() as seconds
"""
"""A view that it reads writes, if it may."""
READING = QueueReading({}, seconds=0.0, read_at=100.0)


@pytest.fixture
def queue() -> Iterator[QueueCollector]:
    with closing(QueueCollector()) as queue:
        yield queue


def read_gauges(queue: QueueCollector) -> dict[tuple[str, ...], float]:
    """Return the samples by name and label values."""
    return {(s.name, *s.labels.values()): s.value for family in queue.collect() for s in family.samples}


def test_the_gauges_say_what_the_queue_holds(table: EntryTable, queue: QueueCollector) -> None:
    """Beside those that test_one_truth holds against the views."""
    table.add_legacy(range(1, 41)).enqueue(batch_size=10)
    table.execute(
        "insert into rowferry.queue (migration_id, name, max_claimed) select id, 'verify', 7 from rowferry.migration"
    )
    with acting(table, "host-a:1:aa", "host-b:2:bb") as (done, broken):
        done.finish(done.claim())
        broken.finish(broken.claim(), failures=[missing(11)])
        held = done.claim()
        before = time.time()
        gauges = read_gauges(queue)
        held.connection.close()
    here = ("avatars", "migrate")
    assert gauges["rowferry_exporter_up",] == 1
    assert gauges["rowferry_exporter_read_seconds",] > 0
    assert gauges["rowferry_queue_estimated_end_timestamp_seconds", *here] > before
    assert gauges["rowferry_queue_oldest_due_seconds", *here] > 0
    assert ("rowferry_queue_max_claimed", *here) not in gauges
    assert gauges["rowferry_queue_max_claimed", "avatars", "verify"] == 7
    assert gauges["rowferry_database_oldest_transaction_seconds", "rowferry"] > 0
    assert gauges["rowferry_database_oldest_transaction_seconds", "others"] == 0
    assert gauges["rowferry_live_workers", "host-a"] == gauges["rowferry_live_workers", "host-b"] == 1
    assert gauges["rowferry_host_claimed_batches", "host-a"] == 1
    assert gauges["rowferry_host_claimed_batches", "host-b"] == 0


def test_a_lost_worker_and_a_paused_migration_are_told(table: EntryTable, queue: QueueCollector) -> None:
    table.add_legacy(range(1, 3)).enqueue()
    table.execute("update rowferry.migration set paused_at = now()")
    with acting(table, "host-a:1:aa"):
        table.execute("update rowferry.worker set last_seen_at = now() - interval '1 minute'")
        gauges = read_gauges(queue)
    assert (gauges["rowferry_live_workers", "host-a"], gauges["rowferry_lost_workers", "host-a"]) == (0, 1)
    assert gauges["rowferry_migration_paused", "avatars"] == 1
    assert gauges["rowferry_queue_paused", "avatars", "migrate"] == 1
    assert [key[2] for key, value in gauges.items() if key[0] == "rowferry_migration_state" and value == 1] == [
        "paused"
    ]
    assert ("rowferry_migration_seconds_left", "avatars") not in gauges
    assert ("rowferry_queue_estimated_end_timestamp_seconds", "avatars", "migrate") not in gauges


def test_the_number_of_queues_with_metrics_is_bounded(
    table: EntryTable, queue: QueueCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowferry_exporter.collector.MOST", 3)
    table.execute(
        "insert into rowferry.migration (name, plan) select 'm' || i, '{}' from generate_series(1, 9) as i; "
        "insert into rowferry.queue (migration_id, name) select id, 'migrate' from rowferry.migration"
    )
    table.add_legacy(range(1, 3)).enqueue()
    gauges = read_gauges(queue)
    assert gauges["rowferry_queue_entries", "avatars", "migrate"] == 2
    assert len([key for key in gauges if key[0] == "rowferry_queue_entries"]) == 3
    assert len([key for key in gauges if key[0] == "rowferry_migration_paused"]) == 3
    assert gauges["rowferry_exporter_queues_left_out",] == 7


def test_without_a_database_it_says_that_it_is_down_and_nothing_else(
    queue: QueueCollector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/nothing")
    assert read_gauges(queue) == {("rowferry_exporter_up",): 0}
    assert not queue.is_ready()
    assert len(caplog.records) == 1


def test_it_finds_a_database_that_comes_back(
    table: EntryTable, queue: QueueCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was away when the exporter started; later the connection broke."""
    monkeypatch.setattr(collector, "is_fresh", lambda *_: False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/nothing")
    assert not queue.is_ready()
    monkeypatch.setenv("DATABASE_URL", table.dsn)
    assert queue.is_ready()
    assert table.execute(f"select pg_terminate_backend(pid) {SESSIONS}") == [{"pg_terminate_backend": True}]
    wait_for(lambda: not table.execute(f"select {SESSIONS}"))
    assert [queue.is_ready(), queue.is_ready()] == [False, True]


def test_it_can_write_nothing(table: EntryTable, queue: QueueCollector, caplog: pytest.LogCaptureFixture) -> None:
    table.execute(SCRIBBLING)
    assert not queue.is_ready()
    assert "read-only transaction" in vars(caplog.records[0])["error"]
    assert table.execute("select from public.scribbled") == []


def test_a_reading_is_kept_for_some_seconds_and_longer_where_it_was_dear_and_none_means_that_it_is_down() -> None:
    cheap, dear = replace(READING, seconds=0.01), replace(READING, seconds=2.0)
    after = 100.0 + MIN_AGE.total_seconds()
    assert [is_fresh(cheap, after - 0.1), is_fresh(cheap, after + 0.1)] == [True, False]
    assert [is_fresh(dear, 139.9), is_fresh(dear, 140.1)] == [True, False]
    assert [family.name for family in describe(None)] == ["rowferry_exporter_up"]
    assert [family.samples[0].value for family in describe({}) if family.name == "rowferry_exporter_up"] == [1]


def test_the_command_serves_and_stops_on_sigterm(migration: Migration) -> None:
    import signal
    import subprocess
    import sys

    from support.processes.scrape import fetch, find_served_port, scrape, sum_of

    with subprocess.Popen(
        [sys.executable, "-m", "rowferry_cli", "exporter", "--port", "0", "--log-format", "json"],
        stderr=subprocess.PIPE,
        text=True,
    ) as exporter:
        assert exporter.stderr is not None
        port = find_served_port(exporter.stderr.readline())
        assert fetch(port, "/healthz")[0] == fetch(port, "/readyz")[0] == 200
        assert sum_of(scrape(port), "rowferry_exporter_up") == 1
        exporter.send_signal(signal.SIGTERM)
        wait_for(lambda: exporter.poll() is not None, deadline=timedelta(seconds=100))
        assert exporter.returncode == 0
