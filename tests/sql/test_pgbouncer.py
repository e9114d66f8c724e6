"""Behind PgBouncer in transaction mode each transaction bounds its own waits, and leaves nothing to the next client."""

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from rowferry.db.connection import Connection, connect, set_local
from rowferry.db.timeouts import LOCK_TIMEOUT, PGBOUNCER, PooledConnection
from rowferry_exporter.collector import read_views
from rowferry_worker.ledger import Ledger
from support.entries.migration import Migration
from support.postgres.pgbouncer import pgbouncer, read_pool
from support.processes.processes import wait_for
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog

POOL_SIZE = 4
BOUNDS = {
    "client_connection_check_interval": "1000",
    "idle_in_transaction_session_timeout": "600000",
    "lock_timeout": "1500",
    "tcp_keepalives_count": "3",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_user_timeout": "15000",
}
"""What a transaction of ours must find, with a lock timeout of 1.5 s; in PostgreSQL's own units."""
OF_A_WORKER = BOUNDS | {"statement_timeout": "19500"}


@pytest.fixture
def pooled(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The DSN of a real PgBouncer in transaction mode before the test's database."""
    monkeypatch.setenv(PGBOUNCER, "1")
    monkeypatch.setenv(LOCK_TIMEOUT, "1.5")
    with pgbouncer(database, tmp_path, POOL_SIZE) as dsn:
        yield dsn


def read_settings(connection: Connection) -> dict[str, str]:
    names = list(OF_A_WORKER)
    rows = connection.execute("select name, setting from pg_settings where name = any(%s)", (names,)).fetchall()
    return {row["name"]: row["setting"] for row in rows}


def test_workers_migrate_through_pgbouncer_in_transaction_mode(pooled: str, versitygw_migration: Migration) -> None:
    migration = versitygw_migration
    migration.given(40, batch_size=5)
    with migration.workers(2, "--until-empty", "--max-batches=1", "--pgbouncer", DATABASE_URL=pooled) as workers:
        assert [worker.wait() for worker in workers] == [0, 0]
    assert migration.counts() == {"migrated": 40}
    migration.audit()


def in_a_statement_of_its_own(connection: Connection) -> dict[str, str]:
    connection.autocommit = True
    return read_settings(connection)


def in_a_transaction(connection: Connection) -> dict[str, str]:
    connection.autocommit = True
    with connection.transaction(), connection.transaction():
        return read_settings(connection)


def in_the_transaction_of_a_batch(connection: Connection) -> dict[str, str]:
    connection.execute("select 1")
    connection.commit()
    connection.execute("select 1")
    return read_settings(connection)


@pytest.mark.parametrize("read", [in_a_statement_of_its_own, in_a_transaction, in_the_transaction_of_a_batch])
def test_every_transaction_bounds_its_waits(
    pooled: str, monkeypatch: pytest.MonkeyPatch, read: Callable[[Connection], dict[str, str]]
) -> None:
    monkeypatch.setenv("DATABASE_URL", pooled)
    with closing(connect("test", bounded=True)) as worker, closing(connect("test")) as command:
        assert read(worker) == OF_A_WORKER
        assert read(command) == BOUNDS | {"statement_timeout": "0"}


def test_a_server_that_cannot_look_for_its_client_is_asked_once(pooled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", pooled)
    monkeypatch.setattr("rowferry.db.timeouts.CHECK_INTERVAL", "-1")  # which is refused as by a platform that cannot
    with closing(connect("test", autocommit=True)) as connection:
        assert isinstance(connection, PooledConnection)
        assert not connection.checks_client
        found = read_settings(connection)
        assert found["client_connection_check_interval"] == "0"
        assert found["lock_timeout"] == "1500"


def test_nothing_of_ours_is_left_to_the_next_client(
    pooled: str, versitygw_migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration = versitygw_migration
    migration.fill(6).add_row(7, "image/nowhere.png").write_plan()
    before = read_pool(pooled, POOL_SIZE)
    monkeypatch.setenv("DATABASE_URL", pooled)
    for arguments, status in (
        (("init",), 0),
        (("enqueue", "--yes", "--batch-size=3"), 0),
        (("pause",), 0),
        (("resume",), 0),
        (("worker", "--until-empty", "--max-batches=1"), 0),
        (("status",), 0),
        (("errors", "--entries"), 0),
        (("requeue", "--all"), 0),
        (("report",), 1),
        (("prune", "--older-than=1d", "--yes"), 0),
    ):
        done = migration.run(*arguments)
        assert done.returncode == status, (arguments, done.stderr)
    with connect("exporter", autocommit=True) as connection:
        read_views(connection)
    ledger = Ledger("test")
    ledger.call("heartbeat", "w", "h", 1, "0", 1, 1, ["migrate"])
    ledger.close()
    after = read_pool(pooled, POOL_SIZE)
    assert set(after) == set(before), "other sessions than before: nothing was proved"
    changed = {pid: dict(after[pid].items() - settings.items()) for pid, settings in before.items()}
    assert not any(changed.values()), changed


def test_the_exporter_can_only_read_and_leaves_sessions_that_can_write(
    pooled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", pooled)
    with connect("exporter", autocommit=True) as connection:
        read_views(connection)
        with connection.transaction(force_rollback=True):
            set_local(connection, transaction_read_only="on")
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                connection.execute("create table public.unwritten ()")
        for _ in range(2 * POOL_SIZE):
            with psycopg.connect(pooled, prepare_threshold=None) as other:
                other.execute("create table if not exists public.written ()")


def test_a_worker_that_is_killed_behind_pgbouncer_gives_its_batch_back_and_leaves_no_lock(
    pooled: str, logged_migration: Migration, log: RequestLog
) -> None:
    migration = logged_migration
    migration.given(10, batch_size=10)
    arguments = ("--until-empty", "--max-batches=1", "--pgbouncer")
    with log.holding(lambda seen: seen.writes_object) as held:
        with migration.workers(1, *arguments, DATABASE_URL=pooled) as (doomed,):
            eventually(lambda: len(held) > 0)
            doomed.signal(signal.SIGKILL)
            assert doomed.wait() == -signal.SIGKILL
        assert migration.verdicts() == [None]
        wait_for(lambda: migration.execute("select id from rowferry.batch_queue for update skip locked"))
    with migration.workers(1, *arguments, DATABASE_URL=pooled) as (other,):
        assert other.wait() == 0, other.log
    assert [verdict for verdict in migration.verdicts() if verdict != "RELEASED"] == [None, "DONE"]
    (last,) = [attempt for attempt in migration.attempts() if attempt["verdict"] == "DONE"]
    assert last["number"] == 2
    assert migration.batch()["attempts"] == 2
    assert "batch has crashed workers or lost connections before" in other.messages()
    locks = "select * from pg_locks as l inner join pg_class as c on l.relation = c.oid where c.relname = 'batch_queue'"
    assert migration.execute(f"{locks} and l.pid <> pg_backend_pid()") == []
    migration.audit()


def test_a_pool_that_is_too_small_starves_no_slot(pooled: str, versitygw_migration: Migration) -> None:
    """A slot holds the last connection and needs another; in 15 s, which is less than it waited, others have theirs."""
    migration = versitygw_migration
    migration.given(4, batch_size=1)
    arguments = ("--until-empty", "--max-batches=1", "--pgbouncer")
    with ExitStack() as strangers, ThreadPoolExecutor(1) as pool:
        for _ in range(POOL_SIZE - 1):
            strangers.enter_context(psycopg.connect(pooled, prepare_threshold=None)).execute("select 1")
        with migration.workers(1, *arguments, DATABASE_URL=pooled) as (worker,):
            while "PgBouncer's pool is too small" not in worker.messages():
                assert worker.process.poll() is None
                assert pool.submit(ask_through, pooled).result(15) == 1
            strangers.close()
            assert worker.wait() == 0
    assert migration.counts() == {"migrated": 4}
    assert None not in migration.verdicts()
    migration.audit()


def ask_through(pooled: str) -> int:
    with psycopg.connect(pooled, prepare_threshold=None) as other:
        (row,) = other.execute("select 1").fetchall()
        return int(row[0])
