"""Rows that a queue writes into a table of its own: in the order of their keys, refused ones isolated, none cut."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from rowferry.db.connection import Connection, connect
from rowferry.db.timeouts import LOCK_TIMEOUT
from rowferry.errors import DatabaseUnavailable, MigrationFault, RowBusy, RowRefused
from rowferry_worker.batch import writes
from rowferry_worker.batch.writes import Upserted, upsert
from support.entries.entry_table import EntryTable, trusted
from support.postgres.roles import new_role

pytestmark = pytest.mark.versions

FACTS = """
    create table public.facts (
        name text primary key,
        number integer check (number <> 13),
        words varchar(5),
        constraint even_names check (name <> 'bad')
    )
"""


@pytest.fixture
def facts(any_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[EntryTable]:
    """A database with a table `facts(name, number, words)`."""
    monkeypatch.setenv(LOCK_TIMEOUT, "0.3")
    with closing(EntryTable(any_database)) as table:
        table.execute(FACTS)
        yield table


@pytest.fixture
def connection(facts: EntryTable) -> Iterator[Connection]:
    with closing(connect("test")) as connection:
        yield connection


@contextmanager
def locked(table: EntryTable, statement: str) -> Iterator[None]:
    """Another session has done this, and ends only afterwards."""
    with psycopg.connect(table.dsn) as other:
        other.execute(statement.encode())
        yield
        other.rollback()


def write(connection: Connection, *rows: Sequence[Any]) -> list[Upserted]:
    """Upsert rows of name, number and words, and commit."""
    upserted = upsert(connection, "public.facts", ["name"], ["number", "words"], rows)
    connection.commit()
    return upserted


def read(table: EntryTable) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.execute("select * from public.facts order by name")]


BEFORE_INSERT = "before insert on public.facts"


def test_rows_are_inserted_updated_or_left_alone(facts: EntryTable, connection: Connection) -> None:
    assert write(connection, ("b", 2, "two"), ("a", 1, None)) == [True, True]
    before = facts.execute("select xmin::text, name from public.facts")
    assert write(connection, ("b", 2, "two"), ("a", 1, None)) == [False, False]
    assert facts.execute("select xmin::text, name from public.facts") == before
    assert write(connection, ("c", 3, ""), ("a", None, "one"), ("b", 2, "two")) == [True, True, False]
    assert read(facts) == [("a", None, "one"), ("b", 2, "two"), ("c", 3, "")]


def test_refused_rows_are_isolated(facts: EntryTable, connection: Connection) -> None:
    rows = [(f"n{number:02}", number, "word") for number in range(40)]
    rows[7], rows[20] = ("bad", 7, "word"), ("n20", 20, "longer")
    upserted = write(connection, *rows)
    refused = {number: str(each) for number, each in enumerate(upserted) if each is not True}
    assert refused == {
        7: 'new row for relation "facts" violates check constraint "even_names"',
        13: 'new row for relation "facts" violates check constraint "facts_number_check"',
        20: "value too long for type character varying(5)",
    }
    assert [row[0] for row in read(facts)] == [row[0] for n, row in enumerate(rows) if n not in refused]


def test_a_deferred_constraint_and_a_failing_trigger_cost_one_row(facts: EntryTable, connection: Connection) -> None:
    facts.execute("alter table public.facts add unique (number) deferrable initially deferred")
    void = "return case when new.name = 'void' then null else new end;"
    facts.add_trigger(f"if new.name = 'odd' then perform 1 / 0; end if; {void}", BEFORE_INSERT)
    upserted = write(connection, ("a", 1, ""), ("odd", 2, ""), ("b", 1, ""), ("void", 3, ""), ("c", 4, ""))
    words = [str(each) for each in upserted]
    assert words == [
        "True",
        "division by zero",
        'duplicate key value violates unique constraint "facts_number_key"',
        "the database left the row as it was (a trigger or rule?)",
        "True",
    ]
    assert [row[0] for row in read(facts)] == ["a", "c"]


def test_a_fault_in_a_triggers_own_statements_is_its_rows(facts: EntryTable, connection: Connection) -> None:
    """Though it is one that would be the table's in ours: no unique index of what a conflict is about."""
    facts.execute("create table public.log (name text)")
    fault = "insert into public.log values ('odd') on conflict (name) do nothing;"
    facts.add_trigger(f"if new.name = 'odd' then {fault} end if; return new;", BEFORE_INSERT)
    first, odd, last = write(connection, ("a", 1, ""), ("odd", 2, ""), ("z", 3, ""))
    assert (first, type(odd), last) == (True, RowRefused, True)


def test_values_of_many_types_arrive_as_they_are(facts: EntryTable, connection: Connection) -> None:
    facts.execute("create domain public.small as integer check (value < 100)")
    facts.execute(
        'create table public."many%s" (id bigint primary key, a jsonb, b json, c bytea, d timestamptz, e numeric, '
        "f text[], g uuid, h char(3), i boolean, j double precision, k public.small, l jsonb, m bit(3))"
    )
    at = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    values = [
        {"ä": [1, None]},
        {"x": True},
        b"\x00\xff",
        at,
        Decimal("1.50"),
        ["a b", None, 'q"'],
        UUID(int=7),
        "ab ",
        True,
        0.1,
        99,
        [1, {"y": 2}],
        "101",
    ]
    columns = list("abcdefghijklm")
    for expected in (True, False):
        assert upsert(connection, 'public."many%s"', ["id"], columns, [[1, *values]]) == [expected]
        connection.commit()
    (row,) = facts.execute('select * from public."many%s"')
    assert list(row.values()) == [1, *values[:6], UUID(int=7), "ab ", *values[8:]]
    with closing(connect("test")) as other:
        for column, value in [("k", 100), ("h", "abcd"), ("m", "10"), ("a", "{"), ("g", "x"), ("d", {"no": 1})]:
            (refused,) = upsert(other, 'public."many%s"', ["id"], [column], [[2, value]])
            assert isinstance(refused, RowRefused), column
        nul, odd, good = upsert(other, 'public."many%s"', ["id"], ["f"], [[3, ["\0"]], [4, [object()]], [5, []]])
        assert (type(nul), type(odd), good) == (RowRefused, RowRefused, True)


def test_a_locked_row_is_busy_and_the_others_are_written(facts: EntryTable, connection: Connection) -> None:
    write(connection, *((name, 0, "") for name in "abc"))
    with locked(facts, "select from public.facts where name = 'b' for update"):
        busy = write(connection, *((name, 1, "") for name in "abcd"))
    assert [type(each) for each in busy] == [bool, RowBusy, bool, bool]
    assert [row[:2] for row in read(facts)] == [("a", 1), ("b", 0), ("c", 1), ("d", 1)]
    with locked(facts, "insert into public.facts values ('e')"):
        assert [type(each) for each in write(connection, ("e", 1, ""))] == [RowBusy]
    assert write(connection, ("e", 1, "")) == [True]


def test_sessions_that_write_the_same_rows_never_deadlock(facts: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins with another order; without the order of keys this ends in deadlocks or lock timeouts."""
    monkeypatch.setenv(LOCK_TIMEOUT, "30")
    names = [f"n{number}" for number in range(200)]

    def write_often(seed: int) -> list[Upserted]:
        dice, found = Random(seed), []
        with closing(connect("test")) as own:
            for number in range(15):
                dice.shuffle(names_of[seed])
                found += write(own, *((name, 100 + seed * 100 + number, "") for name in names_of[seed]))
        return found

    names_of = {seed: list(names) for seed in range(4)}
    before = facts.execute("select deadlocks from pg_stat_database where datname = current_database()")
    with ThreadPoolExecutor(4) as pool:
        written = [each for found in pool.map(write_often, names_of) for each in found]
    assert written == [True] * 4 * 15 * 200
    assert facts.execute("select deadlocks from pg_stat_database where datname = current_database()") == before


def test_of_rows_with_equal_keys_the_last_one_counts_and_rows_of_keys_alone_are_inserted_once(
    facts: EntryTable, connection: Connection
) -> None:
    assert write(connection, ("a", 1, ""), ("b", 1, ""), ("a", 2, "")) == [True, True, True]
    assert read(facts) == [("a", 2, ""), ("b", 1, "")]
    facts.execute("create table public.numbers (id integer primary key, word text)")
    rows = [("1", "one"), ("01", "uno"), ("2", "two")]
    assert upsert(connection, "public.numbers", ["id"], ["word"], rows) == [True, True, True]
    for expected in (True, False):
        assert upsert(connection, "public.facts", ["name"], [], [("z",)]) == [expected]
    assert upsert(connection, "public.facts", ["name"], [], []) == []
    connection.rollback()
    facts.execute("alter table public.facts alter words type text")
    assert write(connection, ("a", 1, {"b": [1]})) == [True]
    assert json.loads(read(facts)[0][2]) == {"b": [1]}


@pytest.mark.parametrize(
    ("change", "table", "words"),
    [
        ("select", "public.fact", "no column name of a table public.fact"),
        ("alter table public.facts drop column words", "public.facts", "no column words of a table public.facts"),
        ("alter table public.facts drop constraint facts_pkey", "public.facts", "has no unique index of name alone"),
        ("set role {role}", "public.facts", "may not write public.facts.name"),
    ],
)
def test_a_table_that_cannot_be_written_is_the_migrations_fault(
    facts: EntryTable, connection: Connection, change: str, table: str, words: str
) -> None:
    with new_role(facts.dsn) as role:
        connection.execute(trusted(change).format(role=sql.Identifier(role)))
        with pytest.raises(MigrationFault, match=words):
            upsert(connection, table, ["name"], ["number", "words"], [("a", 1, ""), ("b", 1, "")])
        connection.rollback()


def test_a_table_that_loses_a_column_before_it_is_written_is_the_migrations_fault(
    facts: EntryTable, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = writes.apply_in_halves

    def apply_later(*arguments: Any) -> Any:
        facts.execute("alter table public.facts drop column words")
        return really(*arguments)

    monkeypatch.setattr(writes, "apply_in_halves", apply_later)
    with pytest.raises(MigrationFault, match="There is no column words"):
        write(connection, ("a", 1, ""), ("b", 1, ""))


def test_a_lost_connection_is_no_rows_fault(facts: EntryTable, connection: Connection) -> None:
    facts.add_trigger("perform pg_terminate_backend(pg_backend_pid()); return new;", BEFORE_INSERT)
    with pytest.raises(DatabaseUnavailable):
        upsert(connection, "public.facts", ["name"], ["number"], [("a", 1)])


def test_a_row_level_policy_costs_one_row(facts: EntryTable, connection: Connection) -> None:
    with new_role(facts.dsn) as name:
        role = sql.Identifier(name)
        facts.execute(sql.SQL("grant all on public.facts to {0}; grant usage on schema public to {0}").format(role))
        facts.execute("alter table public.facts enable row level security")
        facts.execute("create policy p on public.facts using (true) with check (number > 0)")
        connection.execute(sql.SQL("set role {}").format(role))
        good, bad = upsert(connection, "public.facts", ["name"], ["number"], [("a", 1), ("b", -1)])
        assert good is True
        assert "row-level security policy" in str(bad)
        connection.rollback()
