"""What the SQL of a plan may call: it runs as every worker's role."""

import pytest

from rowferry.db.called_functions import ALLOWED_SQL_FUNCTIONS, list_expressions, refuse_functions
from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.errors import MigrationFault
from rowferry_enqueue.checks.rows import expressions
from rowferry_worker import migration as worker_migration
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration

EVIL = """
create schema evil;
create table evil.noted (key text);
create function evil.grab(text) returns boolean language sql volatile
as 'insert into evil.noted values ($1) returning true';
create function evil.look(text) returns boolean language sql stable as 'select true';
create view evil.seen as select evil.look('x') as is_seen;
create operator evil.=== (leftarg = text, rightarg = text, function = pg_catalog.texteq);
create function evil.same(text, text) returns boolean language sql stable as 'select true';
create operator evil.~~~ (leftarg = text, rightarg = text, function = evil.same);
create domain evil.short as text check (evil.look(value));
"""

REFUSED = {
    "evil.grab(path)": "calls evil.grab(text), which is volatile",
    "evil.look(path)": "calls evil.look(text), which is neither PostgreSQL's own nor in",
    "exists (select from evil.seen where is_seen)": "calls evil.look(text)",
    "path operator(evil.~~~) 'x'": "calls evil.same(text,text)",
    "path::evil.short is not null": "calls evil.look(text)",
    "pg_catalog.set_config('a.b', path, false) is not null": "calls set_config(text,text,boolean), which is volatile",
    "pg_sleep(0) is null": "calls pg_sleep(double precision), which is volatile",
    "random() < 2": "calls random(), which is volatile",
    "table_to_xml('public.avatars', true, true, '') is not null": "calls table_to_xml(",
    "(select count(*) from generate_series(1, nextval('public.s'))) > 0": "calls nextval(regclass), which is volatile",
}
TAKEN = [
    "path like 'image/%'",
    "path operator(evil.===) path",
    "exists (select from public.avatars as o where o.id = e.id and lower(o.path) is not null)",
    "current_setting('application_name') <> '' and now() > '2020-01-01'",
    "(select sum(length(x)) from unnest(string_to_array(path, '/')) as x) > 0",
]


@pytest.fixture
def queries(table: EntryTable) -> EntryTable:
    table.execute("create sequence public.s")
    table.execute(EVIL)
    return table


def judge(table: EntryTable, where: str) -> str:
    """Return why a condition is refused; empty: it is not."""
    table.plan["entries"][0]["where"] = where
    with connect("test") as connection:
        found = EntryQueries.of(connection, table.read_plan().entries[0])
        try:
            refuse_functions(connection, found, list_expressions(found))
        except MigrationFault as fault:
            return str(fault)
        finally:
            views = "select from pg_class where relname like 'rowferry: %'"
            assert connection.execute(views.encode()).fetchall() == [], "the view is taken back"
    return ""


@pytest.mark.versions
def test_only_functions_that_write_nothing_and_are_known_are_called(
    queries: EntryTable, subtests: pytest.Subtests
) -> None:
    for where, words in REFUSED.items():
        with subtests.test(where):
            assert words in judge(queries, where)
    for where in TAKEN:
        with subtests.test(where):
            assert judge(queries, where) == ""


def test_the_environment_allows_more_but_nothing_volatile(queries: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOWED_SQL_FUNCTIONS, "evil.look, evil.grab")
    assert judge(queries, "evil.look(path)") == ""
    assert "is volatile" in judge(queries, "evil.grab(path)")


@pytest.fixture
def evil(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> Migration:
    """A plan that calls a function which writes, and that an enqueuer has let pass."""
    migration.execute(EVIL)
    monkeypatch.setattr(expressions, "refuse_functions", lambda *_: None)
    migration.fill(2)
    migration.plan["entries"][0]["where"] = "evil.grab(path)"
    migration.enqueue()
    migration.execute("truncate evil.noted")
    return migration


def test_a_worker_sets_a_plan_aside_that_calls_a_function_of_others(evil: Migration) -> None:
    with evil.workers(1, "--until-empty") as (worker,):
        worker.wait()
        assert "calls evil.grab(text), which is volatile" in worker.log
    assert evil.execute("select * from evil.noted") == []
    assert evil.production.listing() == {}


def test_a_range_is_read_in_a_transaction_that_cannot_write(evil: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where what is called has become another since it was looked at."""
    monkeypatch.setattr(worker_migration, "refuse_functions", lambda *_: None)
    evil.work()
    assert evil.execute("select * from evil.noted") == []
    assert evil.statuses() == {"INIT"}
