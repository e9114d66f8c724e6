"""Each form of entries under an application that writes between read and update: nothing is lost, no row is ahead."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg import sql

from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.keys import find_objects
from rowferry_queues.migrate import perform as migrate
from rowferry_queues.revert import perform as revert
from support.entries.entry_table import keyed
from support.entries.forms import FORMS
from support.entries.migration import Migration
from support.entries.prepared_forms import prepare
from support.postgres.lock_holders import work_while_locked

some_forms = pytest.mark.by_day("*url*", "*composite id*", "*jsonb*")

HOSTILE = [
    ("url", "set url = '//old.example.com/o/2.png'", "changed", "now holds '//old.example.com/o/2.png'"),
    ("url", "set url = '//elsewhere/'", "changed", "now holds"),
    ("url", "set url = null", "changed", "now holds None"),
    ("percent", "set url = 'https://old/a b%C3%A9.png?v=1#x'", "changed", "now holds"),
    ("storage prefix", "set path = ''", "changed", "now holds ''"),
    ("state", "set service_name = 'local'", "changed", "no longer one to work on"),
    ("state", "set store = null", "changed", "no longer one to work on"),
    ("state", "set store = 2, service_name = 'r2', flag = true", "changed", "no longer one to work on"),
    ("state", "set key = 'another'", "changed", "now holds 'another'"),
    ("state and prefix", "set store = 2", "changed", "no longer one to work on"),
    ("state and prefix", "set key = key", "migrated", ""),
    ("composite id", "set path = 'image/other'", "changed", "now holds 'image/other'"),
    ("jsonb", "set image_data = jsonb_set(image_data, '{versions,s,0,id}', '\"image/x\"')", "changed", "image/x"),
    ("jsonb", "set image_data = image_data #- '{versions,l,0}'", "changed", "now holds"),
    ("jsonb", "set image_data = image_data || '{\"new\": 7}'", "migrated", ""),
    ("json in text", 'set data = \'{"id": "image/other"}\'', "changed", "image/other"),
    ("json in text", 'set data = \'{"more": [1, 2], "id": "image/1"}\'', "migrated", ""),
    ("array", "set paths = paths || 'image/3'::varchar", "changed", "image/3"),
    ("array", "set paths = null", "changed", "now holds '{}'"),
    ("computed", "set file_name = 'other.png'", "changed", "now holds 'other.png'"),
    ("computed", "set store = 7", "changed", "no longer one to work on"),
    ("computed", "set folder = 'p/'", "changed", "has other objects now"),
    ("computed", "set size = 'small/'", "changed", "has other objects now"),
    ("computed", "set hidden = true", "changed", "no longer one to work on"),
    ("computed", "set title = 'new'", "migrated", ""),
]
"""A form, what the application does to its first row, the outcome of its entry, and words of the error."""


def first_row(name: str) -> str:
    return "tenant = 'a' and number = 2" if name == "composite id" else "id = 1"


def read_first(migration: Migration, name: str) -> dict[str, Any]:
    (row,) = migration.execute(f"select * from public.things where {first_row(name)}")
    return row


@contextmanager
def before_the_update(migration: Migration, monkeypatch: pytest.MonkeyPatch, queue: Any, words: str) -> Iterator[None]:
    """Have the application do something once the objects are copied, before the rows are updated."""
    really = queue.rewrite_rows

    def rewrite_rows(*arguments: Any, **more: Any) -> Any:
        migration.execute(words)
        return really(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(queue, "rewrite_rows", rewrite_rows)
        yield


def hold_rows_against_objects(migration: Migration) -> None:
    """Hold every production row against its objects, and every batch against its counts."""
    with connect("test") as connection:
        entries = migration.read_plan().entries[0]
        queries = EntryQueries.of(connection, entries)
        query = "select {id_text} as id, {text} as key, {objects} as objects from {table} as e where {is_production}"
        rows = connection.execute(sql.SQL(query).format(**queries._parts), queries.parameters()).fetchall()
    there = migration.production.listing()
    for entry in to_entries(rows):
        for found in find_objects(entry, entries):
            stands = found.production in there
            if entries.names_folders:  # something stands in it
                stands = any(key.startswith(found.production) for key in there)
            assert stands or not found.is_required, found
    migration.check_balance()


@some_forms
@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: f"{case[0]}: {case[1]}")
@pytest.mark.parametrize("moment", ["before", "while"])
def test_a_row_that_the_application_changes_meanwhile_keeps_what_it_wrote(
    migration: Migration, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, str, str], moment: str
) -> None:
    name, change, outcome, words = case
    prepare(migration, name)
    change = f"update public.things {change} where {first_row(name)}"
    migration.execute(f"create table public.expected as select * from public.things where {first_row(name)}")
    migration.execute(change.replace("public.things", "public.expected"))
    (expected,) = migration.execute("select * from public.expected")
    migration.enqueue()
    if moment == "before":
        with before_the_update(migration, monkeypatch, migrate, change):
            migration.work()
    else:
        with work_while_locked(migration, change) as other:
            other.commit()
    assert migration.counts().get("changed", 0) == (outcome == "changed"), migration.failures()
    assert set(migration.counts()) <= {"migrated", "kept", "changed"}
    if outcome == "changed":
        assert read_first(migration, name) == expected
        assert words in next(failure["error"] for failure in migration.failures())
    else:
        assert kept_of(read_first(migration, name)) == kept_of(expected)
    hold_rows_against_objects(migration)


def kept_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return what of a row the migration has no part in."""
    return {
        column: {member: each for member, each in value.items() if member not in {"versions", "id"}}
        if isinstance(value, dict)
        else value
        for column, value in row.items()
        if column in {"title", "image_data"}
    }


@some_forms
@pytest.mark.versions
@pytest.mark.parametrize("name", FORMS)
def test_a_row_that_is_deleted_meanwhile_is_deleted(
    migration: Migration, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    prepare(migration, name)
    migration.enqueue()
    delete = f"delete from public.things where {first_row(name)}"
    with before_the_update(migration, monkeypatch, migrate, delete):
        migration.work()
    assert migration.counts()["deleted"] == 1
    assert migration.statuses() == {"DONE"}
    hold_rows_against_objects(migration)


@some_forms
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    ("body", "words"), [("return null;", "the update left the row as it was"), ("return old;", "(a trigger?)")]
)
def test_a_row_that_a_trigger_does_not_let_move_has_failed_and_the_others_move(
    migration: Migration, name: str, body: str, words: str
) -> None:
    prepare(migration, name)
    before = read_first(migration, name)
    condition = "old.tenant = 'a' and old.number = 2" if name == "composite id" else "old.id = 1"
    migration.add_trigger(f"if {condition} then {body} end if; return new;", "before update on public.things")
    migration.migrate()
    assert migration.counts()["failed"] == 1
    (failure,) = migration.failures()
    assert words in failure["error"]
    assert read_first(migration, name) == before
    hold_rows_against_objects(migration)


@pytest.mark.parametrize("column", ["service_name", "flag"])
def test_a_trigger_that_puts_one_state_back_lets_no_row_say_half(migration: Migration, column: str) -> None:
    prepare(migration, "state")
    migration.add_trigger(f"new.{column} := old.{column}; return new;", "before update on public.things")
    before = read_first(migration, "state")
    assert migration.migrate() == {"failed": 1}
    assert "does not have the production form after the update (a trigger?)" in migration.failures()[0]["error"]
    assert read_first(migration, "state") == before


@some_forms
@pytest.mark.versions
@pytest.mark.parametrize("name", ["url", "state", "composite id", "jsonb", "computed"])
def test_a_row_that_changes_while_it_is_put_back_keeps_what_was_written(
    migration: Migration, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    prepare(migration, name)
    migration.migrate()
    key = FORMS[name].entries["key"]
    value = "'{}'" if name == "jsonb" else "'written meanwhile'"
    migration.enqueue(queue="revert")
    change = f"update public.things set {key} = {value} where {first_row(name)}"
    with before_the_update(migration, monkeypatch, revert, change):
        migration.work("revert")
    assert migration.statuses() == {"DONE"}
    assert read_first(migration, name)[key] == ({} if name == "jsonb" else "written meanwhile")
    (failure,) = migration.failures()
    assert failure["outcome"] == "changed"


NAMES = re.findall(
    r"\w+",
    """
    e wanted held id_text rest key text objects place value rowferry_id rowferry_old f n q w p m t o u l r d position
    number stretch legacy_key first last entries payload is_entry has_moved queue
    """,
)


@pytest.mark.versions
@pytest.mark.parametrize("queue", ["migrate", "verify", "revert"])
def test_a_users_columns_may_have_any_name(migration: Migration, queue: str) -> None:
    """The SQL of the plan names them as they are, and means no column of ours."""
    columns = ", ".join(f"\"{name}\" text not null default '{name}/'" for name in NAMES)
    migration.execute(f"create table public.things (id integer primary key, state text default 'old', {columns})")
    migration.execute("insert into public.things (id) select generate_series(1, 3)")
    keys = {number: "".join(f"{name}/" for name in NAMES) + f"{number}" for number in (1, 2, 3)}
    for key in keys.values():
        migration.legacy.put(key, b"body")
    migration.plan_entries(
        "public.things",
        **keyed(
            "key",
            "",
            "",
            moved={"state": ["old", "new"]},
            production_object="new/",
            objects=" || ".join(f'"{name}"' for name in NAMES) + " || id",
            where=" and ".join(f"\"{name}\" <> ''" for name in NAMES),
        ),
    )
    assert migration.migrate(2) == {"migrated": 3}, migration.failures()
    migration.execute("insert into public.things (id) values (0)")
    migration.enqueue()
    if queue != "migrate":
        migration.execute("delete from public.things where id = 0")
        migration.work()
        migration.enqueue(2, queue=queue)
        migration.work(queue)
        assert migration.statuses() == {"DONE"}, migration.failures()
        states = migration.execute("select distinct state from public.things")
        assert states == [{"state": "old" if queue == "revert" else "new"}]
