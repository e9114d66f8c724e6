"""A database that is away, or cannot be written to, for a moment: workers wait, and nothing is lost or charged."""

from collections.abc import Iterator
from signal import SIGINT, SIGQUIT, Signals
from typing import Any

import psycopg
import pytest
from psycopg import errors

from rowferry.db.connection import translate
from rowferry.errors import DatabaseUnavailable
from rowferry_lab.servers.postgres import EmbeddedPostgres
from support.entries.migration import Migration
from support.postgres.ordinary import as_owner, ordinary_postgres
from support.postgres.servers import make_schema
from support.processes.cli import refused
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog, writes_of

AWAY = "database unavailable, retrying"


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that the test may restart, or make read-only."""
    with ordinary_postgres() as server:
        make_schema(as_owner(server.dsn()))
        yield server


@pytest.fixture
def database(own_postgres: EmbeddedPostgres) -> str:
    return as_owner(own_postgres.dsn())


def write_anyway(server: EmbeddedPostgres) -> psycopg.Connection[Any]:
    """Return a session that may write, as every session may that asks for it."""
    return psycopg.connect(server.dsn(), autocommit=True, options="-c default_transaction_read_only=off")


def make_read_only(server: EmbeddedPostgres, *, read_only: bool) -> None:
    """Forbid or allow writing, in sessions that exist as well, as managed services do where a disk is full."""
    with write_anyway(server) as connection:
        connection.execute(f"alter system set default_transaction_read_only = {'on' if read_only else 'off'}")
        connection.execute("select pg_reload_conf()")


@pytest.mark.by_day("1")
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_outlives_a_read_only_moment(
    processes: str, own_postgres: EmbeddedPostgres, migration: Migration
) -> None:
    migration.given(20, 5)
    migration.execute("update rowferry.migration set paused_at = now()")
    with migration.workers(1, "--processes", processes, "--max-batches=1") as (worker,):
        eventually(lambda: len(migration.execute("select from rowferry.live_workers")) == int(processes))
        make_read_only(own_postgres, read_only=True)
        with write_anyway(own_postgres) as connection:
            connection.execute("update rowferry.migration set paused_at = null")
        eventually(lambda: worker.messages().count(AWAY) >= 2)
        assert worker.process.poll() is None
        make_read_only(own_postgres, read_only=False)
        migration.wait_until_done()
    assert migration.counts() == {"migrated": 20}
    assert {attempt["number"] for attempt in migration.attempts()} == {1}
    migration.audit()


@pytest.mark.must("a database that restarts", "immediate")
@pytest.mark.by_day("immediate")
@pytest.mark.parametrize("mode", [pytest.param(SIGINT, id="fast"), pytest.param(SIGQUIT, id="immediate")])
def test_a_restart_costs_no_attempt(
    mode: Signals, own_postgres: EmbeddedPostgres, migration: Migration, log: RequestLog
) -> None:
    migration.given(60, 20)
    migration.close()
    with migration.workers(1, "--until-empty", "--max-batches=1") as (worker,):
        with log.holding(writes_of(range(31, 41)), where="answer") as held:
            eventually(lambda: held)
            own_postgres.restart(mode)
        assert worker.wait() == 0
    assert sum(migration.counts().values()) == 60
    assert migration.statuses() == {"DONE"}
    assert sorted(map(str, migration.verdicts())) == ["DONE", "DONE", "DONE", "LOST"]
    assert {attempt["number"] for attempt in migration.attempts()} == {1}
    migration.audit()


def test_a_command_says_that_the_database_is_read_only(own_postgres: EmbeddedPostgres, migration: Migration) -> None:
    migration.fill(1).write_plan().enqueue()
    make_read_only(own_postgres, read_only=True)
    assert refused(migration.run("pause")).startswith("rowferry: PostgreSQL is read-only now: cannot execute ")


@pytest.mark.parametrize(
    "error",
    [
        errors.ReadOnlySqlTransaction,
        errors.CannotConnectNow,
        errors.AdminShutdown,
        errors.TooManyConnections,
        errors.DiskFull,
        errors.OutOfMemory,
        errors.ConnectionFailure,
    ],
)
def test_what_may_pass_on_another_connection_is_an_outage(error: type[psycopg.Error]) -> None:
    assert isinstance(translate(error("as told")), DatabaseUnavailable)
