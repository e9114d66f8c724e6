"""`max_replica_lag`, with a real standby: workers hold back while it is behind, say so, and go on afterwards."""

import select
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from psycopg import pq, sql
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.postgres_programs import choose_postgres_binaries
from support.entries.checks import row_problems
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.ordinary import OWNER, administrator, as_owner, ordinary_postgres
from support.postgres.roles import log_in, new_role
from support.postgres.servers import make_schema
from support.processes.processes import wait_for
from support.processes.scrape import scrape, served_port, sum_of
from support.processes.worker_process import WorkerProcess, eventually
from support.s3.buckets import Buckets
from torture.standby import execute, make_standby, wait_for_standby

WAL_DATA, KEEPALIVE = b"w", b"k"
"""Messages of the streaming replication protocol: https://www.postgresql.org/docs/current/protocol-replication.html."""


class Replica:
    """Receives WAL from now on; replays nothing until it is told to."""

    def __init__(self, connection: PGconn, at: str) -> None:
        """`connection`: streams from the position `at` on."""
        self._connection = connection
        high, low = (int(half, 16) for half in at.split("/"))
        self._replayed = self._received = (high << 32) + low

    def receive(self) -> None:
        """Take in what has come, and report how far it was replayed."""
        connection = self._connection
        while select.select([connection.socket], [], [], 0)[0]:
            connection.consume_input()
            length = 1
            while length > 0:
                length, data = connection.get_copy_data(1)
                if length > 0 and data[:1] == WAL_DATA:
                    (start,) = struct.unpack_from(">q", data, 1)
                    self._received = max(self._received, start + length - 25)
                elif length > 0 and data[:1] == KEEPALIVE:
                    self._received = max(self._received, *struct.unpack_from(">q", data, 1))
        position = self._received, self._received, self._replayed
        connection.put_copy_data(struct.pack(">cqqqqb", b"r", *position, 0, 0))
        connection.flush()

    def replay(self) -> None:
        """Replay all that has come."""
        self._replayed = self._received


@contextmanager
def streaming_replica(dsn: str) -> Iterator[Replica]:
    """Yield a replica of the server that a superuser's DSN leads to."""
    connection = pq.PGconn.connect(make_conninfo(dsn, replication="true").encode())
    try:
        assert connection.status == pq.ConnStatus.OK, connection.error_message
        (at,) = (connection.exec_(b"IDENTIFY_SYSTEM").get_value(0, 2) or b"",)
        begun = connection.exec_(b"START_REPLICATION PHYSICAL " + at)
        assert begun.status == pq.ExecStatus.COPY_BOTH, connection.error_message
        connection.nonblocking = 1
        yield Replica(connection, at.decode())
    finally:
        connection.finish()


BOUND_SECONDS = 2
HELD_BACK = "a replica is behind, holding back"
METRIC = "rowferry_limit_wait_seconds_total"


@pytest.fixture
def primary() -> Iterator[EmbeddedPostgres]:
    with ordinary_postgres() as primary:
        make_schema(as_owner(primary.dsn()))
        with administrator(primary.dsn()) as connection:  # as docs/plan.md asks for
            connection.execute(sql.SQL("grant pg_monitor to {}").format(sql.Identifier(OWNER)))
        yield primary


@pytest.fixture
def standby(primary: EmbeddedPostgres) -> Iterator[EmbeddedPostgres]:
    """A standby that streams from the primary to which `replicated` belongs."""
    if not (choose_postgres_binaries() / "pg_basebackup").exists():
        pytest.skip("this PostgreSQL comes without pg_basebackup, which makes the standby")
    with ExitStack() as until:
        folder = Path(until.enter_context(TemporaryDirectory(prefix="rowferry-standby-")))
        standby = until.enter_context(make_standby(primary, folder))
        wait_for_standby(primary, synchronous=False)
        yield standby


@pytest.fixture
def replicated(
    primary: EmbeddedPostgres, moto_buckets: Buckets, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Migration]:
    """An empty migration in a database that has a replica."""
    migration = Migration(as_owner(primary.dsn()), moto_buckets, moto_buckets, tmp_path)
    for name, value in migration.environment.items():
        monkeypatch.setenv(name, value)
    migration.plan["database"] = {"max_replica_lag": BOUND_SECONDS}
    yield migration
    migration.close()


def count_held_back(worker: WorkerProcess) -> int:
    return worker.messages().count(HELD_BACK)


def add_batch(migration: Migration) -> None:
    migration.fill(1, start=len(migration.rows()) + 1).enqueue(batch_size=1)


def test_workers_hold_back_while_a_replica_is_behind_and_go_on_when_it_is_not(
    replicated: Migration, standby: EmbeddedPostgres
) -> None:
    migration = replicated
    add_batch(migration)
    with migration.workers(1, "--max-batches=2", "--metrics-port=0") as (worker,):
        port = served_port(worker)
        migration.wait_until_done()
        assert count_held_back(worker) == 0, "the replica keeps up, and no worker waits for it"

        execute(standby, "select pg_wal_replay_pause()")
        while_adding(migration, lambda: count_held_back(worker) >= 2)
        held_before, attempts_before = count_held_back(worker), len(migration.attempts())
        add_batch(migration)
        eventually(lambda: count_held_back(worker) >= held_before + 4)  # each slot, twice
        assert len(migration.attempts()) == attempts_before
        assert "INIT" in migration.statuses()
        assert sum_of(scrape(port), METRIC, limit="max_replica_lag") > 0

        execute(standby, "select pg_wal_replay_resume()")
        migration.wait_until_done()
    migration.audit()


def while_adding(migration: Migration, condition: Callable[[], bool]) -> None:
    """Give the workers batch after batch until the condition holds, so that they have to do with the replica's lag."""

    def add_and_look() -> bool:
        add_batch(migration)
        return condition()

    wait_for(add_and_look, deadline=timedelta(seconds=90))


def test_the_lag_is_that_of_the_replica_that_is_furthest_behind(table: EntryTable) -> None:
    with ExitStack() as until:
        login = log_in(table, until.enter_context(new_role(table.dsn, "replication")))
        quick, slow = (until.enter_context(streaming_replica(login)) for _ in range(2))
        watcher = until.enter_context(let_see_replicas(table))

        def lags() -> list[timedelta]:
            """Return the lags as PostgreSQL tells them, after some work that one of the two replays at once."""
            table.execute("create table public.written as select 1")
            table.execute("drop table public.written")
            for report in (quick.receive, quick.replay, quick.receive, slow.receive):
                report()
            found = watcher.execute("select replay_lag from pg_stat_replication").fetchall()
            return [lag for (lag,) in found if lag is not None]

        def tells_the_longer() -> bool:
            """Look once more at two lags that differ; a replica may say something between the two looks."""
            lags()
            (beat,) = table.execute("select * from rowferry.heartbeat('a:1:x', 'a', 1, '1', 0, 16, '{copy}')")
            found = watcher.execute("select replay_lag from pg_stat_replication").fetchall()
            told = {lag for (lag,) in found if lag is not None}
            return len(told) == 2 and beat["replica_lag"] == max(told)

        eventually(tells_the_longer)


def test_an_invisible_replica_is_a_problem(table: EntryTable) -> None:
    """Until its owner is granted pg_monitor, as docs/plan.md says."""
    table.plan["database"] = {"max_replica_lag": BOUND_SECONDS}
    (problem,) = row_problems(table)
    assert "may not see how far replicas are behind" in problem
    with let_see_replicas(table):
        assert row_problems(table) == []


@contextmanager
def let_see_replicas(table: EntryTable) -> Iterator[psycopg.Connection[Any]]:
    """Let `heartbeat` be a role's that may see replicas; yield a superuser's session."""
    with new_role(table.dsn) as name, administrator(table.dsn) as connection:
        for statement in (
            "grant pg_monitor to {}",
            "grant usage on schema rowferry to {}",
            "grant all on all tables in schema rowferry to {}",
            "grant all on all functions in schema rowferry to {}",
            "alter function rowferry.heartbeat owner to {}",
        ):
            connection.execute(sql.SQL(statement).format(sql.Identifier(name)))
        yield connection
