"""A database of an older version, with data in it, is brought to a version with one migration more, and goes on."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg.types.json import Jsonb

from rowferry import __version__
from rowferry.db.connection import call, connect
from rowferry.db.schema import Initialised, check_version, initialise
from rowferry.db.statements import list_sql, sql_folder, statement
from rowferry.errors import DatabaseBusy, UsageError
from support.processes.cli import Run, refused
from support.processes.processes import wait_for

pytestmark = pytest.mark.versions

NEXT = max(int(path.stem.split("_")[0]) for path in list_sql("migrations")) + 1
NAME = f"{NEXT:04}_made_up"
MIGRATION = """
alter table rowferry.migration add column note text not null default 'none';
alter table rowferry.batch_queue add column priority integer not null default 0;
drop function rowferry.update_worker(text, jsonb);
"""
"""Stands for what a later version brings: columns, and room for the successor of a function."""
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
COLUMNS = "select count(*) from pg_attribute where attrelid = 'rowferry.migration'::regclass and attname = 'note'"


@pytest.fixture
def old(any_database: str) -> str:
    """The database of an older version, to which DATABASE_URL leads."""
    with connect("test") as connection:
        connection.execute("update rowferry.installation set version = '0.0.9'")
        connection.execute(DATA)
    return any_database


@pytest.fixture
def made_up(old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A migration more, which this process takes for one of this version; after `old`, which does not have it."""
    assert old
    folder = tmp_path / "sql"
    shutil.copytree(sql_folder(), folder)
    path = folder / "migrations" / f"{NAME}.sql"
    path.write_text(MIGRATION)
    monkeypatch.setattr("rowferry.db.statements.sql_folder", lambda: folder)
    return path


def upgrade() -> Initialised:
    with connect("init", autocommit=True) as connection:
        return initialise(connection)


@pytest.mark.usefixtures("made_up")
def test_what_was_counted_stays_counted_and_what_waits_goes_on_with_the_new_version_alone(old: str) -> None:
    with connect("worker", autocommit=True) as worker:
        with pytest.raises(UsageError, match="an older rowferry"):
            check_version(worker)
        done = upgrade()
        check_version(worker)
    assert (done.migrations, done.version_before) == ((NAME,), "0.0.9")
    assert upgrade().migrations == ()
    with psycopg.connect(old, autocommit=True) as reader, connect("test") as worker:
        assert reader.execute(PROGRESS).fetchall() == [(3, 1, 1, 1, 27, 5, 20, 2)]
        (batch,) = call(worker, "claim_batch", [1], ["migrate"])
        (attempt,) = call(worker, "begin_attempt", batch["id"], batch["requeues"], "w2")
        assert (batch["id"], attempt["number"], attempt["crashes"]) == (3, 2, 0)
        call(worker, "finish_batch", 3, attempt["attempt_id"], "DONE", "0 s", None, 5, 0, 0, *[[]] * 6)
        worker.commit()
        assert reader.execute(PROGRESS).fetchall() == [(3, 0, 2, 1, 27, 0, 25, 2)]
        assert reader.execute("select name, note from rowferry.migration where paused_at is null").fetchall() == [
            ("avatars", "none")
        ]
        call(worker, "update_worker", "w", Jsonb({}))  # functions come after the migrations that make room for them


def test_a_migration_that_fails_changes_nothing(old: str, made_up: Path) -> None:
    made_up.write_text(MIGRATION + "select 1 / 0;")
    with pytest.raises(UsageError, match="division by zero"):
        upgrade()
    with psycopg.connect(old) as reader:
        assert reader.execute(COLUMNS).fetchall() == [(0,)]
        assert reader.execute("select version from rowferry.installation").fetchall() == [("0.0.9",)]
        assert reader.execute("select max(number) from rowferry.schema_migration").fetchall() == [(NEXT - 1,)]


@pytest.mark.usefixtures("made_up")
def test_tables_that_workers_hold_are_not_waited_for_for_ever(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWFERRY_LOCK_TIMEOUT", "0.2")
    with psycopg.connect(old) as worker:
        worker.execute("select from rowferry.batch_queue for update skip locked")
        with pytest.raises(DatabaseBusy, match=r"so nothing was changed. Stop workers"):
            upgrade()
        worker.rollback()
        assert worker.execute(COLUMNS).fetchall() == [(0,)]
        worker.rollback()
        assert upgrade().migrations == (NAME,)


@pytest.mark.usefixtures("made_up")
def test_an_upgrade_takes_longer_than_statements_of_its_role_may(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To wait longer than the role's statement_timeout for another `init` stands for the scan of a large queue."""
    with psycopg.connect(old) as other, ThreadPoolExecutor() as pool:
        other.execute(statement("lock_schema"))
        monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=300ms")
        running = pool.submit(upgrade)
        wait_for(lambda: running.done() or other.execute(WAITING).fetchall())
        other.execute("select pg_sleep(0.6)")
        other.rollback()
        assert running.result(timeout=60).migrations == (NAME,)


def test_an_upgrade_says_that_grants_are_due(old: str, run_rowferry: Run) -> None:
    """A version without a migration stands for an older one; functions that were replaced have lost their grants."""
    with connect("test", autocommit=True) as connection:
        connection.execute("drop schema rowferry cascade")
        connection.execute(statement("create_schema"))
        connection.execute("insert into rowferry.installation (version) values ('0.0.9')")
    done = run_rowferry("init")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"0.0.9 → {__version__}" in done.stdout
    assert "`rowferry init --grants`" in done.stdout
    assert "--grants" not in run_rowferry("init").stdout


@pytest.mark.parametrize(
    "others",
    [
        "update rowferry.schema_migration set name = '0001_queue'",
        """
        update rowferry.schema_migration set name = '0001_queue';
        insert into rowferry.schema_migration (number, name, digest, applied_by) values (2, '0002_pause', '', '0.1.0')
        """,
    ],
    ids=["another first migration", "other migrations, and more of them"],
)
def test_the_schema_of_an_unreleased_version_is_refused(old: str, run_rowferry: Run, others: str) -> None:
    with connect("test", autocommit=True) as connection:
        connection.execute(others.encode())
        connection.execute("drop view rowferry.recent_attempts")
        with pytest.raises(UsageError, match="by an unreleased version"):
            check_version(connection)
        said = refused(run_rowferry("init", DATABASE_URL=old))
        assert "`drop schema rowferry cascade` and run `rowferry init` again." in said
        assert connection.execute("select to_regclass('rowferry.recent_attempts') as view").fetchall() == [
            {"view": None}
        ]


def test_a_schema_without_a_table_of_its_migrations_is_refused(old: str, run_rowferry: Run) -> None:
    """An unreleased version may have edited the first migration in place: its name tells nothing."""
    with connect("test", autocommit=True) as connection:
        connection.execute("drop table rowferry.event cascade")
        done = run_rowferry("init", DATABASE_URL=old)
        assert (done.returncode, done.stdout) == (2, "")
        assert 'by an unreleased version (relation "rowferry.event" does not exist): finish' in done.stderr
        assert connection.execute("select version from rowferry.installation").fetchall() == [{"version": "0.0.9"}]
