"""What workers tell each other through the heartbeat."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from threading import Event

import psycopg
import pytest

from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring.heartbeat import ClusterState, FleetRate, Heartbeat, WorkerReport
from support.entries.entry_table import EntryTable
from support.postgres.roles import grant, log_in, new_role

COPY, PUT = "https://s3.example/media CopyObject", "https://s3.example/media PutObject"


class Worker:
    """A worker that only sends heartbeats."""

    def __init__(self, worker_id: str) -> None:
        self.ledger = Ledger(worker_id)
        self.cluster = ClusterState()
        self.report = WorkerReport(0, 4)
        self.heartbeat = Heartbeat(
            self.ledger, worker_id, ["migrate"], lambda: self.report, lambda: True, self.cluster, Event()
        )

    def send(self, batches: int, limit: int, **rates: float) -> ClusterState:
        """Report this and return what comes back. `rates`: by operation."""
        self.report = WorkerReport(
            batches, limit, {{"copy": COPY, "put": PUT}[name]: rate for name, rate in rates.items()}
        )
        self.heartbeat.send()
        return self.cluster


@pytest.fixture
def workers(table: EntryTable) -> Iterator[list[Worker]]:
    del table  # DATABASE_URL
    workers = [Worker(f"w{number}") for number in range(3)]
    with ExitStack() as until:
        for worker in workers:
            until.enter_context(closing(worker.ledger))
        yield workers


def test_each_heartbeat_says_what_the_worker_is_doing_now(table: EntryTable, workers: list[Worker]) -> None:
    workers[0].send(1, 4)
    workers[0].send(7, 512, copy=250.5)
    (row,) = table.execute("select batches, in_flight_limit, request_rates from rowferry.worker")
    assert row == {"batches": 7, "in_flight_limit": 512, "request_rates": {COPY: 250.5}}


def test_each_worker_learns_what_all_get_through_together(workers: list[Worker]) -> None:
    first, second, third = workers
    assert first.send(1, 4, copy=250.0).fleet_rates == {COPY: FleetRate(250.0, 1)}
    second.send(1, 4, copy=150.5, put=10.0)
    assert third.send(1, 4).fleet_rates == {COPY: FleetRate(400.5, 2), PUT: FleetRate(10.0, 1)}
    assert first.send(1, 4).fleet_rates == {COPY: FleetRate(150.5, 1), PUT: FleetRate(10.0, 1)}, "it is free again"


def test_a_dead_worker_takes_no_share(table: EntryTable, workers: list[Worker]) -> None:
    _, second, third = workers
    for worker in workers:
        worker.send(1, 4, copy=100.0)
    table.execute("update rowferry.worker set last_seen_at = now() - interval '1 minute' where id = 'w0'")
    second.heartbeat.deregister()
    assert third.send(1, 4, copy=100.0).fleet_rates == {COPY: FleetRate(100.0, 1)}
    assert third.cluster.size == 1


@pytest.mark.parametrize("rate", ['"much"', "1e400", "-1", "null", "[1]", "{}"])
def test_a_worker_that_reports_nonsense_is_refused(table: EntryTable, workers: list[Worker], rate: str) -> None:
    """Others would compute with it: no float holds 1e400."""
    with pytest.raises(psycopg.errors.CheckViolation):
        table.execute(
            "select rowferry.heartbeat('odd', 'h', 1, '0', 1, 1, '{migrate}', %s::jsonb)", (f'{{"{COPY}": {rate}}}',)
        )
    assert workers[0].send(1, 4, copy=100.0).fleet_rates == {COPY: FleetRate(100.0, 1)}


def test_a_heartbeat_reads_no_more_beside_a_thousand_workers(table: EntryTable, workers: list[Worker]) -> None:
    table.execute(
        "insert into rowferry.worker (id, host, pid, version, batches, in_flight_limit, queues, request_rates) "
        "select n::text, 'h', n, '0', 0, 1, '{migrate}', %s::jsonb from generate_series(1, 1000) as n",
        (f'{{"{COPY}": 1.5}}',),
    )
    assert workers[0].send(1, 4, copy=100.0).fleet_rates == {COPY: FleetRate(1600.0, 1001)}
    with psycopg.connect(table.dsn) as session:
        for number in range(20):
            session.execute(
                "select rowferry.heartbeat(%s, 'h', 1, '0', 1, 1, '{migrate}')", (f"one-{number}",), prepare=False
            )
        (read,) = session.execute(
            "select pg_stat_get_xact_tuples_returned('rowferry.worker'::regclass)"
            " + pg_stat_get_xact_tuples_fetched('rowferry.worker'::regclass)"
        ).fetchone() or (0,)
    assert read < 3 * 1000, "twenty heartbeats, of which one or two sum all workers up"


def test_a_role_that_may_only_call_functions_shares_the_rates(
    table: EntryTable, workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    workers[0].send(1, 4, copy=100.0)
    with new_role(table.dsn) as role:
        grant(table, {"worker": role})
        monkeypatch.setenv("DATABASE_URL", log_in(table, role))
        least = Worker("least")
        with closing(least.ledger):
            assert least.send(1, 4, copy=50.0).fleet_rates == {COPY: FleetRate(150.0, 2)}


@pytest.mark.versions
def test_workers_may_take_a_quarter_of_the_connections(table: EntryTable, workers: list[Worker]) -> None:
    kept = "('superuser_reserved_connections', 'reserved_connections')"  # the second is new in PostgreSQL 16
    (row,) = table.execute(
        "select sum(case name when 'max_connections' then setting::integer else -setting::integer end) as connections "
        f"from pg_settings where name = 'max_connections' or name in {kept}"
    )
    assert workers[0].send(0, 4).connections == row["connections"] // 4
