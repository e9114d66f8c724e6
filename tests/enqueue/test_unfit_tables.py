"""No table that a check refuses gets into the queue, and each refusal says what to do; odd tables that can serve do."""

import pytest
from psycopg import sql

from rowferry.batch import EntryResult, Outcome
from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.errors import UsageError
from rowferry_worker.batch.row_update import RowChange, update_rows
from rowferry_worker.batch.sources.table import read_entries
from support.entries.checks import entries_of, row_problems
from support.entries.entry_table import TO, EntryTable
from support.postgres.ordinary import OWNER, administrator

NOT_UNIQUE = "is not unique; name the columns of the primary key"
UNFIT = {
    "repeating ids": ("create table odd (id bigint not null, path text)", NOT_UNIQUE),
    "unique where": (
        "create table odd (id bigint not null, path text); create unique index on odd (id) where id > 10",
        "is not unique; name the columns of the primary key, or make a unique index over this alone",
    ),
    "unique with another": ("create table odd (id bigint not null, path text, unique (id, path))", NOT_UNIQUE),
    "unique expression": (
        "create table odd (id bigint not null, path text); create unique index on odd ((id + 1))",
        NOT_UNIQUE,
    ),
    "partitioned, and not unique": (
        "create table odd (id bigint not null, path text, day date not null) partition by range (day)",
        NOT_UNIQUE,
    ),
    "null ids": ("create table odd (id bigint unique, path text)", "may be null; name a column that is `not null`"),
    "no order": ("create table odd (id json not null, path text)", "has no order; name another column"),
    "no order of points": ("create table odd (id point not null, path text)", "has no order; name another column"),
    "array": ("create table odd (id integer[] primary key, path text)", "is an array; name a column of single values"),
    "generated id": (
        "create table odd (n bigint, path text, id bigint generated always as (n + 1) stored primary key)",
        "is generated from other columns; name an ordinary column",
    ),
    "generated key": (
        "create table odd (id bigint primary key, data jsonb, path text generated always as (data ->> 'id') stored)",
        "is generated from other columns, so it cannot be rewritten; name the column that it is generated from",
    ),
    "key of bytes": ("create table odd (id bigint primary key, path bytea)", "is bytea, not text"),
    "key of documents": (
        "create table odd (id bigint primary key, path jsonb)",
        "is jsonb, not text; say by `path` where",
    ),
    "view": ("create view odd as select * from avatars", "is a view; name the table behind it"),
    "materialized view": (
        "create materialized view odd as select * from avatars",
        "is a materialized view; name the table that it is made from",
    ),
    "foreign table": (
        "create server s foreign data wrapper w; create foreign table odd (id bigint not null, path text) server s",
        "is a foreign table; run rowferry in the database that holds its rows",
    ),
    "sequence": ("create sequence odd", "is no table; correct `table` in the plan"),
    "children": (
        "create table odd (id bigint primary key, path text); create table child () inherits (odd)",
        "other tables inherit from public.odd, and their ids may repeat; name each of them",
    ),
    "rule": (
        "create table odd (id bigint primary key, path text); create rule r as on update to odd do also select 1",
        "a rule rewrites every UPDATE of public.odd; drop the rule",
    ),
}


@pytest.fixture
def table(table: EntryTable) -> EntryTable:
    """The usual table, with a connection that makes others beside it, foreign ones too."""
    with administrator(table.dsn) as connection:
        connection.execute("create foreign data wrapper w")
        connection.execute(sql.SQL("grant usage on foreign data wrapper w to {}").format(sql.Identifier(OWNER)))
    table.execute("set search_path = public")
    return table


@pytest.mark.parametrize("case", UNFIT)
def test_a_table_that_cannot_serve_is_refused_before_anything_is_written(case: str, table: EntryTable) -> None:
    definition, words = UNFIT[case]
    for statement in definition.split("; "):
        table.execute(statement)
    table.add_legacy([1])
    entries_of(table)["table"] = "public.odd"
    for refused in (table.enqueue, table.preview):
        with pytest.raises(UsageError) as caught:
            refused()
        assert words in str(caught.value)
        assert str(caught.value).endswith(".")
    assert table.execute("select from rowferry.migration") == []
    assert [found for found in row_problems(table) if found in words or words.split("; ")[0] in found]


def test_one_column_that_is_named_twice_is_refused(table: EntryTable) -> None:
    first = dict(entries_of(table))
    table.execute("alter table avatars add column thumbnail text")
    table.plan["entries"] = [first, {**first, "key": "thumbnail"}]
    assert row_problems(table) == []
    table.plan["entries"] = [first, {**first, "table": "avatars"}]
    with pytest.raises(UsageError, match=r"avatars\.path and avatars\.path name the same rows .*; leave one of them"):
        table.enqueue()
    assert any("name the same rows" in found for found in row_problems(table))
    table.execute("create table odd (id bigint primary key, path text) partition by range (id)")
    table.execute("create table odd_low partition of odd for values from (0) to (10)")
    table.plan["entries"] = [{**first, "table": name} for name in ("public.odd_low", "public.odd")]
    with pytest.raises(UsageError, match="name the same rows"):
        table.enqueue()


PATHS = (
    ("$.id", "$.derivatives.*.id", True),
    ("$.small.id", "$.large.id", True),
    ("$[0]", "$[1]", True),
    ("$[0].id", "$.*.id", True),
    ("$.*.id", "$.large.id", False),
    ("$[*]", "$[1]", False),
    ("$.id", '$."id"', False),
)


def test_one_document_may_be_named_for_several_places(table: EntryTable) -> None:
    table.execute("alter table avatars add column data jsonb")
    first = {**entries_of(table), "key": "data"}
    for path, other, are_apart in PATHS:
        table.plan["entries"] = [{**first, "path": path}, {**first, "path": other, "name": "the other"}]
        assert any("name the same rows" in found for found in row_problems(table)) is not are_apart


def test_children_may_be_named_each_by_itself(table: EntryTable) -> None:
    table.execute("create table child (primary key (id)) inherits (avatars)")
    table.execute("insert into child values (1, 'image/child')")
    table.insert({"1": "image/parent"})
    entries_of(table)["where"] = "tableoid = 'public.avatars'::regclass"
    table.plan["entries"].append({**entries_of(table), "table": "public.child", "where": ""})
    assert [done.entries for done in table.enqueue()] == [1, 1]


@pytest.fixture
def by_date(table: EntryTable) -> EntryTable:
    """A table partitioned by date, whose ids are unique together with the date only; two rows have the same id."""
    table.execute(
        "create table events (id bigint, path text, day date, primary key (id, day)) partition by range (day)"
    )
    table.execute("create table events_1 partition of events for values from ('2026-01-01') to ('2026-02-01')")
    table.execute("create table events_2 partition of events for values from ('2026-02-01') to ('2026-03-01')")
    entries_of(table)["table"] = "public.events"
    table.execute("insert into events select i, 'image/' || i, '2026-01-07'::date + i from generate_series(1, 40) as i")
    return table


def migrate(table: EntryTable, ranges: list[tuple[str, str]]) -> list[EntryResult]:
    """Rewrite the rows of these ranges as a worker does."""
    with connect("worker test") as connection:
        queries = EntryQueries.of(connection, table.read_plan().entries[0])
        entries = [entry for bounds in ranges for entry in read_entries(connection, queries, *bounds)]
        moves = [RowChange(entry, (TO + entry.key,)) for entry in entries]
        done = update_rows(connection, queries, moves)
        connection.commit()
    assert {result.entry.key for result in done} == {entry.key for entry in entries}
    return done


def test_a_table_partitioned_by_date_is_migrated(by_date: EntryTable) -> None:
    assert row_problems(by_date) == []
    assert by_date.enqueue(7)[0].entries == 40
    migrate(by_date, by_date.ranges())
    moved = "select count(*)::int as moved from events where path = 'avatar/image/' || id"
    assert by_date.execute(moved) == [{"moved": 40}]


def test_ids_that_repeat_in_partitions_are_found_and_do_no_harm(by_date: EntryTable) -> None:
    """A row never takes the key of another with the same id."""
    by_date.execute("insert into events values (1, 'image/another', '2026-02-27')")
    assert row_problems(by_date) == ["public.events.id repeats in different partitions, for example 1"]
    assert {result.outcome for result in migrate(by_date, [("1", "2")])} == {Outcome.MIGRATED}
    moved = by_date.execute("select id, path from events where id <= 2 order by path")
    expected = [(1, "avatar/image/1"), (2, "avatar/image/2"), (1, "avatar/image/another")]
    assert [(row["id"], row["path"]) for row in moved] == expected


CONDITIONS = (
    "id > 3 -- the first three are tests",
    "id > 3 /* ; ( */",
    "path <> 'a;(b' and id > 3",
    "path <> $q$;('$q$ and (id) > 3",
    "path <> E'it\\'s;' and id > 3",
)


def test_comments_and_strings_in_a_condition_are_read_as_postgresql_reads_them(table: EntryTable) -> None:
    table.add_legacy(range(6))
    for condition in CONDITIONS:
        entries_of(table)["where"] = condition
        assert row_problems(table) == []
        assert table.preview()[0].entries == 2


@pytest.mark.parametrize(("legacy_prefix", "production_prefix"), [("", "avatar/"), ("image/", "")])
def test_an_empty_key_is_no_entry(table: EntryTable, legacy_prefix: str, production_prefix: str) -> None:
    """As blank file names of Django are: it is unexpected, whatever the prefixes."""
    entries_of(table).update({"from": legacy_prefix, "to": production_prefix})
    table.insert({"1": "", "2": None, "3": "image/3"})
    assert row_problems(table) == []
    assert table.enqueue()[0].entries == 1
    assert table.ranges() == [("3", "3")]
    with connect("test") as connection:
        queries = EntryQueries.of(connection, table.read_plan().entries[0])
        counted = connection.execute(queries.compose("count_entries"), queries.parameters()).fetchone()
    assert counted == {"legacy": 1, "production": 0, "unexpected": 2}
