"""`rowferry init` brings any database to this version, once or by many at a time, and says what it did."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rowferry import __version__
from rowferry.db.connection import connect
from rowferry.db.schema import Initialised, check_version, initialise
from rowferry.db.statements import list_sql
from rowferry.db.timeouts import LOCK_TIMEOUT
from rowferry.errors import UsageError
from support.postgres.ordinary import as_superuser, drop_database, make_own_database
from support.postgres.roles import PASSWORD, new_role
from support.processes.cli import Run, refused

pytestmark = pytest.mark.versions

NAMES = [path.stem for path in list_sql("migrations")]


@pytest.fixture
def empty_database(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database without the schema, to which DATABASE_URL leads; four at once wait long on a loaded machine."""
    monkeypatch.setenv(LOCK_TIMEOUT, "3m")
    name = f"empty_{uuid4().hex}"
    dsn = make_own_database(database, name)
    monkeypatch.setenv("DATABASE_URL", dsn)
    yield dsn
    drop_database(database, name)


def ask(dsn: str, query: str | sql.Composed) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode() if isinstance(query, str) else query)
        return cursor.fetchall() if cursor.description else []


def init() -> Initialised:
    with connect("init", autocommit=True) as connection:
        return initialise(connection)


def test_a_new_database_gets_every_migration_function_and_view_and_nothing_else(empty_database: str) -> None:
    count = "select count(*) from pg_class where relnamespace = 'public'::regnamespace"
    before = ask(empty_database, count)
    done = init()
    assert list(done.migrations) == NAMES
    assert done.version_before is None
    assert (done.functions, done.views) == (len(list_sql("functions")), len(list_sql("views")))
    assert ask(empty_database, "select name from rowferry.schema_migration order by number") == [(n,) for n in NAMES]
    assert ask(empty_database, count) == before


def test_a_second_time_applies_nothing_restores_what_was_changed_and_keeps_what_is_there(empty_database: str) -> None:
    init()
    for change in (
        "insert into rowferry.migration (name, plan) values ('mine', '{}')",
        "create or replace function rowferry.check_worker(p_worker_id text) returns void language sql as 'select null'",
        "grant select on rowferry.progress to public",
    ):
        ask(empty_database, change)
    done = init()
    assert (done.migrations, done.version_before) == ((), __version__)
    assert ask(empty_database, "select name from rowferry.migration") == [("mine",)]
    ((source,),) = ask(empty_database, "select prosrc from pg_proc where proname = 'check_worker'")
    assert "rowferry.ledger" in str(source)
    assert ask(empty_database, "select has_table_privilege('public', 'rowferry.progress', 'select')") == [(True,)]
    ask(empty_database, "drop view rowferry.claimed_batches cascade")
    ask(empty_database, "create view rowferry.claimed_batches as select 1 as something_else")
    init()
    assert ask(empty_database, "select count(batch_id) from rowferry.claimed_batches") == [(0,)]


def test_two_hosts_at_once_apply_each_migration_once(empty_database: str) -> None:
    start = Barrier(4)

    def init_with_others(_: int) -> Initialised:
        with connect("init", autocommit=True) as connection:
            start.wait()
            return initialise(connection)

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(init_with_others, range(4)))
    assert sorted(len(one.migrations) for one in done) == [0, 0, 0, len(NAMES)]
    assert ask(empty_database, "select count(*) from rowferry.schema_migration") == [(len(NAMES),)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("update rowferry.installation set version = '999.0.0'", "999.0.0"),
        (
            "insert into rowferry.schema_migration (number, name, digest, applied_by) "
            "values (9999, '9999_later', '', '999.0.0')",
            f"{__version__}, and has 9999_later, which is unknown to this {__version__}: update",
        ),
    ],
    ids=["by its version", "though two versions under development may have the same number"],
)
def test_a_database_that_a_newer_version_has_touched_is_refused(
    empty_database: str, run_rowferry: Run, change: str, words: str
) -> None:
    init()
    ask(empty_database, change)
    ask(empty_database, "drop view rowferry.progress cascade")
    assert refused(run_rowferry("init")).startswith(f"rowferry: This database was initialised by rowferry {words}")
    assert ask(empty_database, "select to_regclass('rowferry.progress')") == [(None,)]


@pytest.mark.parametrize("what", ["table rowferry.migration ()", "function rowferry.set_pause() returns int return 1"])
def test_a_schema_of_something_else_is_left_alone(what: str, empty_database: str, run_rowferry: Run) -> None:
    ask(empty_database, "create schema rowferry")
    ask(empty_database, f"create {what}")
    said = refused(run_rowferry("init"))
    assert said.startswith("rowferry: The schema rowferry of this database belongs to something else")
    assert ask(empty_database, "select to_regclass('rowferry.schema_migration')") == [(None,)]


def test_a_database_of_a_newer_or_an_unreleased_version_is_told(empty_database: str) -> None:
    init()
    with connect("worker", autocommit=True) as connection:
        check_version(connection)
        connection.execute(
            "insert into rowferry.schema_migration (number, name, digest, applied_by) values (9999, '', '', '')"
        )
        with pytest.raises(UsageError, match="a newer rowferry"):
            check_version(connection)
        for change in ("update {} set digest = '' where number = 1", "alter table {} drop column digest"):
            connection.execute(change.format("rowferry.schema_migration").encode())
            with pytest.raises(UsageError, match="made by an unreleased version"):
                check_version(connection)


def test_tables_that_workers_hold_are_not_waited_for_without_a_word(database: str, run_rowferry: Run) -> None:
    with psycopg.connect(database) as worker:
        worker.execute("lock table rowferry.batch_queue in row exclusive mode")
        refused = run_rowferry("init", DATABASE_URL=database, ROWFERRY_LOCK_TIMEOUT="0.2")
        worker.rollback()
        assert run_rowferry("init", DATABASE_URL=database).returncode == 0
    assert refused.returncode == 2
    assert refused.stderr.startswith("rowferry: The tables of rowferry are in use, so nothing was changed. Stop ")
    assert len(refused.stderr.splitlines()) == 1


def test_a_session_that_has_read_a_view_keeps_nobody_from_initialising_again(database: str, run_rowferry: Run) -> None:
    with psycopg.connect(database) as reader:
        for path in list_sql("views"):
            reader.execute(sql.SQL("select * from rowferry.{} limit 1").format(sql.Identifier(path.stem)))
        done = run_rowferry("init", DATABASE_URL=database, ROWFERRY_LOCK_TIMEOUT="0.2")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_session_that_has_read_a_view_that_must_change_keeps_it(database: str, run_rowferry: Run) -> None:
    view = "rowferry.oldest_transactions"
    ask(database, f"create or replace view {view} as select ''::text as of, 1::double precision as seconds")
    with psycopg.connect(database) as reader:
        reader.execute("select * from rowferry.oldest_transactions")
        refused = run_rowferry("init", DATABASE_URL=database, ROWFERRY_LOCK_TIMEOUT="0.2")
    assert refused.returncode == 2
    assert "(pg_locks names their sessions)" in refused.stderr
    assert run_rowferry("init", DATABASE_URL=database).returncode == 0
    assert len(ask(database, f"select * from {view}")) == 2, "the proof that it was changed back"


def test_an_ordinary_role_owns_what_it_initialises_and_sees_what_is_next(
    empty_database: str, run_rowferry: Run
) -> None:
    """As at strangers': no superuser, may make neither roles nor databases, merely owns its database."""
    (rights,) = ask(empty_database, "select rolsuper, rolcreaterole, rolcreatedb from pg_roles where rolname = user")
    assert rights == (False, False, False)
    done = [run_rowferry("init"), run_rowferry("init")]
    assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 2
    owners = (
        "select distinct pg_get_userbyid(relowner) = user from pg_class where relnamespace = 'rowferry'::regnamespace"
    )
    assert ask(empty_database, owners) == [(True,)]
    first, second = done
    assert f"new → {__version__}" in first.stdout
    assert ", ".join(NAMES) in first.stdout
    assert "rowferry migrate --dry-run" in first.stdout
    assert "none, all were applied before" in second.stdout


@pytest.mark.superuser("the owner of everything may be one, as on many a laptop")
def test_a_superuser_initialises_a_database_too(empty_database: str, run_rowferry: Run) -> None:
    done = run_rowferry("init", DATABASE_URL=as_superuser(empty_database))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_role_initialises_a_database_of_another_once_it_may_create_there(
    empty_database: str, run_rowferry: Run
) -> None:
    with new_role(empty_database) as name:
        dsn = make_conninfo(empty_database, user=name, password=PASSWORD)
        assert "PostgreSQL does not allow this role" in refused(run_rowferry("init", DATABASE_URL=dsn))
        grant = sql.SQL("grant create on database {} to {}")
        database = str(conninfo_to_dict(empty_database)["dbname"])
        ask(empty_database, grant.format(sql.Identifier(database), sql.Identifier(name)))
        done = [run_rowferry("init", DATABASE_URL=dsn) for _ in range(2)]
        assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 2
        assert ask(dsn, "select name from rowferry.schema_migration order by number") == [(n,) for n in NAMES]
