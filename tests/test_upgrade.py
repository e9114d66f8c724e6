"""A database that an older rowferry has made, with data in it, is brought to this version and goes on."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from cli import Run
from processes import wait_for
from rowferry import __version__
from rowferry.db.connection import Connection, call, connect
from rowferry.db.schema import initialise
from rowferry.db.statements import list_sql, read_sql, statement

OLD = 7
"""The last migration of the schema before batches were claimed one by one, and tallied."""
OLD_FUNCTIONS = """
create function rowferry.claim_batch(queues text []) returns bigint language sql as 'select 1';
create function rowferry.begin_attempt(batch_id bigint, requeues integer, worker_id text) returns bigint
language sql as 'select 1';
create function rowferry.register_migration(name text, plan jsonb) returns bigint language sql as 'select 1';
"""
DATA = """
insert into rowferry.migration (name, plan) values ('avatars', '{"entries": []}'), ('paused', '{}');
update rowferry.migration set paused_at = now() where name = 'paused';
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, status, migrated, failed, finished_at)
select 1, 'migrate', '{"entries": "public.avatars.path", "first": "1", "last": "9"}', 9, s.status, s.migrated, s.failed,
    case when s.status <> 'INIT' then now() end
from (values ('DONE', 9, 0), ('ERROR', 7, 2), ('INIT', 4, 1)) as s (status, migrated, failed);
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, verdict, finished_at)
values (1, 0, 1, 'w', 'DONE', now()), (2, 0, 1, 'w', 'ERROR', now()), (3, 0, 1, 'w', 'RETRY', now());
"""
PROGRESS = """
select batches, batches_init, batches_done, batches_error, entries, waiting, migrated, failed
from rowferry.table_progress
"""
WAITING = "select 1 from pg_locks where locktype = 'advisory' and not granted"
OVERLOADS = """
select p.proname from pg_proc as p
where p.pronamespace = 'rowferry'::regnamespace group by p.proname having count(*) > 1
"""


@pytest.fixture
def old(any_database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database of an older rowferry, to which DATABASE_URL leads."""
    monkeypatch.setenv("DATABASE_URL", any_database)
    with connect("test") as connection:
        connection.execute("drop schema rowferry cascade")
        connection.execute(statement("create_schema"))
        for number, path in enumerate(list_sql("migrations")[:OLD], start=1):
            connection.execute(read_sql(f"migrations/{path.name}"))
            record = {"number": number, "name": path.stem, "applied_by": "0.0.9"}
            connection.execute(statement("record_migration"), record)
        connection.execute(statement("record_installation"), {"version": "0.0.9"})
        connection.execute(OLD_FUNCTIONS)
        connection.execute(DATA)
    return any_database


def upgrade() -> None:
    with connect("init", autocommit=True) as connection:
        done = initialise(connection)
    assert done.version_before == "0.0.9"
    assert [name[:4] for name in done.migrations] == [
        f"{number:04}" for number in range(OLD + 1, len(done.migrations) + OLD + 1)
    ]


def finish_the_last(connection: Connection) -> None:
    (batch,) = call(connection, "claim_batch", ["migrate"])
    (attempt,) = call(connection, "begin_attempt", batch["id"], batch["requeues"], "w2")
    assert (batch["id"], attempt["number"], attempt["crashes"]) == (3, 2, 0)
    call(connection, "finish_batch", 3, attempt["attempt_id"], "DONE", "0 s", None, 5, 0, 0, *[[]] * 6)
    connection.commit()


def test_what_was_counted_stays_counted_and_what_waits_goes_on(old: str) -> None:
    upgrade()
    with psycopg.connect(old, autocommit=True) as reader, connect("test") as worker:
        assert reader.execute(PROGRESS).fetchall() == [(3, 1, 1, 1, 27, 5, 20, 2)]
        finish_the_last(worker)
        assert reader.execute(PROGRESS).fetchall() == [(3, 0, 2, 1, 27, 0, 25, 2)]
        assert reader.execute("select name from rowferry.migration where paused_at is null").fetchall() == [
            ("avatars",)
        ]


def test_no_function_of_the_older_one_stays_beside_its_successor(old: str) -> None:
    upgrade()
    with psycopg.connect(old) as reader:
        assert reader.execute(OVERLOADS).fetchall() == []


def test_an_upgrade_takes_longer_than_statements_of_its_role_may(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To wait longer than the role's statement_timeout for another `init` stands for the scan of a large queue."""
    with psycopg.connect(old) as other, ThreadPoolExecutor() as pool:
        other.execute(statement("lock_schema"))
        monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=300ms")
        running = pool.submit(upgrade)
        wait_for(lambda: running.done() or other.execute(WAITING).fetchall())
        other.execute("select pg_sleep(0.6)")
        other.rollback()
        running.result(timeout=60)


def test_an_upgrade_says_that_grants_are_due(old: str, run_rowferry: Run) -> None:
    """Functions that were replaced have lost theirs, and there are new ones."""
    done = run_rowferry("init")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"0.0.9 → {__version__}" in done.stdout
    assert "`rowferry init --grants`" in done.stdout
    assert "--grants" not in run_rowferry("init").stdout
