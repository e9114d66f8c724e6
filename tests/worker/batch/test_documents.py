"""Texts in documents and arrays: only the place of the plan is rewritten, whatever else the document holds."""

import json
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from rowferry.batch import Outcome
from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.errors import UsageError
from rowferry.keys import map_entry
from rowferry.plan import Entries
from rowferry.plan.path import parse_path
from rowferry_worker.batch.row_update import RowChange, update_rows
from rowferry_worker.batch.sources.table import read_entries
from support.entries.checks import check_rows_of, row_problems
from support.entries.entry_table import FROM, TO, EntryTable, keyed
from support.entries.migration import Migration
from support.queue.queue_runs import outcomes, revert, verify

NAMES = st.sampled_from(["id", "a", "0", "", "a name", 'q"\\', "{x,y}", "NULL", "é"])
TEXTS = st.sampled_from(["image/1", "image/a b", "avatar/1", "other", "", 'image/"\\é', "image/%(x)s"])
LEAVES = st.one_of(
    TEXTS,
    TEXTS,
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.decimals(-9, 9, places=4, allow_nan=False),
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(NAMES, below, max_size=3)),
    max_leaves=12,
)
STEPS = st.one_of(
    NAMES.map(lambda name: "." + json.dumps(name, ensure_ascii=False)), st.sampled_from([".*", "[*]", "[0]", "[1]"])
)
PATHS = st.lists(STEPS, max_size=3).map(lambda steps: "$" + "".join(steps))


def rewrite(document: Any, steps: tuple[str, ...], change: Callable[[str], str]) -> Any:
    """Return a document with the texts at a path changed: the model."""
    if not steps:
        return change(document) if isinstance(document, str) else document
    step, rest = steps[0], steps[1:]
    if isinstance(document, dict) and not step.startswith("["):
        names = document if step == "*" else {step[1:]} & document.keys()
        return document | {name: rewrite(document[name], rest, change) for name in names}
    if isinstance(document, list) and step.startswith("["):
        return [
            rewrite(value, rest, change) if step in {"[*]", f"[{number}]"} else value
            for number, value in enumerate(document)
        ]
    return document


def to_production(text: str) -> str:
    return TO + text.removeprefix(FROM) if text.startswith(FROM) else text


def load(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def move_all(table: EntryTable, entries: Entries) -> int:
    """Give all rows the production form, as a worker does once their objects stand; return how many."""
    with connect("worker test") as connection:
        queries = EntryQueries.of(connection, entries)
        found = read_entries(connection, queries, "0", "99")
        moves = [RowChange(entry, (map_entry(entry, entries).new_key,)) for entry in found]
        results = update_rows(connection, queries, moves)
        connection.commit()
    assert {result.outcome for result in results} <= {Outcome.MIGRATED}, results
    return len(results)


@pytest.mark.by_day("jsonb")
@pytest.mark.parametrize("column_type", ["jsonb", "json", "text", "varchar(4000)"])
def test_a_document_is_rewritten_as_the_model_says(column_type: str, table: EntryTable) -> None:
    table.execute(f"create table public.things (id bigint primary key, data {column_type})")

    @settings(max_examples=40)
    @given(DOCUMENTS, PATHS)
    def check(document: Any, path: str) -> None:
        entries = Entries("public.things", "id", "data", FROM, TO, path=path)
        table.execute("truncate public.things")
        table.execute(
            f"insert into public.things values (1, %s::jsonb::{column_type})",
            (json.dumps(document, default=float, ensure_ascii=False),),
        )
        before = load(table.execute("select data::text as data from public.things")[0]["data"])
        expected = rewrite(before, parse_path(path), to_production)
        assert move_all(table, entries) == (expected != before)
        assert load(table.execute("select data::text as data from public.things")[0]["data"]) == expected

    check()


@pytest.mark.parametrize(("path", "places"), [("$[*]", None), ("$[1]", {1})])
def test_an_array_is_rewritten_as_the_model_says(path: str, places: set[int] | None, table: EntryTable) -> None:
    table.execute("create table public.things (id bigint primary key, data varchar(40)[])")
    entries = Entries("public.things", "id", "data", FROM, TO, path=path)

    @settings(max_examples=30)
    @given(st.lists(st.one_of(TEXTS, st.none()), max_size=5))
    def check(texts: list[str | None]) -> None:
        table.execute("truncate public.things")
        table.execute("insert into public.things values (1, %s)", (texts,))
        expected = [
            to_production(text) if text and (places is None or number in places) else text
            for number, text in enumerate(texts)
        ]
        assert move_all(table, entries) == (expected != texts)
        assert table.execute("select data from public.things") == [{"data": expected}]

    check()


def test_a_path_leads_to_the_elements_of_an_array_that_a_document_can_say_and_no_further(table: EntryTable) -> None:
    table.execute("create table public.things (id bigint primary key, data text[])")
    table.execute("insert into public.things values (1, '[0:1]={image/1,image/2}'), (2, '{{image/1},{image/2}}')")
    assert move_all(table, Entries("public.things", "id", "data", FROM, TO, path="$[*]")) == 0
    table.plan["entries"][0] |= {"table": "public.things", "key": "data", "path": "$[*][*]"}
    assert row_problems(table) == ["public.things.data is an array of texts, and `path` leads to none of its elements"]


def test_a_document_of_a_thousand_texts_is_rewritten_at_once(table: EntryTable) -> None:
    """Each text is put in its place while the document is built once: 2 MB of them take no gigabytes."""
    files = [{"id": f"image/{number}", "note": "x" * 200} for number in range(9000)]
    table.execute("create table public.things (id bigint primary key, data jsonb)")
    table.execute("insert into public.things values (1, %s)", (Jsonb({"files": files}),))
    assert move_all(table, Entries("public.things", "id", "data", FROM, TO, path="$.files[*].id")) == 1
    (row,) = table.execute("select data from public.things")
    assert row["data"] == {"files": [each | {"id": to_production(each["id"])} for each in files]}


def test_a_deep_document_keeps_what_is_below(table: EntryTable) -> None:
    deep: Any = "image/deep"
    for _ in range(500):
        deep = [deep]
    table.execute("create table public.things (id bigint primary key, data jsonb)")
    table.execute("insert into public.things values (1, %s)", (Jsonb({"id": "image/1", "deep": deep}),))
    assert move_all(table, Entries("public.things", "id", "data", FROM, TO, path="$.id")) == 1
    assert table.execute("select data from public.things") == [{"data": {"id": "avatar/1", "deep": deep}}]


ODD_TEXTS = [
    "",
    "no json",
    "{",
    '{"id": "image/x\\u0000"}',
    '{"id": "image/x", "n": 1e999999}',
    '{"id": "image/\\ud800"}',
]


@pytest.fixture
def documents(migration: Migration) -> Migration:
    """A table of JSON in a text column, and five objects."""
    migration.execute("create table public.things (id bigint primary key, data text, note text)")
    migration.plan_entries("public.things", **keyed("data", path="$.files[*]"))
    for number in range(5):
        migration.legacy.put(f"{FROM}{number}", f"body of {number}".encode())
    return migration


def add_document(migration: Migration, row_id: int, document: str) -> None:
    migration.execute("insert into public.things values (%s, %s)", (row_id, document))


def add_files(migration: Migration, row_id: int, *files: str) -> None:
    add_document(migration, row_id, json.dumps({"files": files}))


def read_files(migration: Migration) -> dict[int, list[str]]:
    rows = migration.execute("select id, data from public.things where data like '{\"files\"%' order by id")
    return {row["id"]: json.loads(row["data"])["files"] for row in rows}


@pytest.mark.versions
def test_texts_that_are_no_documents_are_no_entries(documents: Migration) -> None:
    (version,) = documents.execute("show server_version_num")
    if int(version["server_version_num"]) < 160000:
        pytest.skip("below PostgreSQL 16 such rows are refused")
    for number, text in enumerate(ODD_TEXTS):
        add_document(documents, 100 + number, text)
    add_files(documents, 1, "image/1")
    assert documents.migrate() == {"migrated": 1}
    assert read_files(documents) == {1: ["avatar/1"]}
    notes = [found.what for found in check_rows_of(documents) if found.level == "note"]
    (unread,) = [what for what in notes if "jsonb can hold" in what]
    assert unread == "public.things.data: 5 rows hold no JSON that jsonb can hold, for example 101, and are no entries"
    shown = documents.execute("select data from public.things where id >= 100 order by id")
    assert [row["data"] for row in shown] == ODD_TEXTS


@pytest.mark.versions
def test_below_postgresql_16_a_text_that_is_no_document_is_refused_with_a_next_step(documents: Migration) -> None:
    (version,) = documents.execute("show server_version_num")
    if int(version["server_version_num"]) >= 160000:
        pytest.skip("from PostgreSQL 16 on such rows are no entries")
    add_files(documents, 1, "image/1")
    documents.enqueue()
    documents.execute("update public.things set data = 'no json'")
    documents.work()
    (batch,) = documents.batches()
    assert "or leave them out by `where` in the plan: `rowferry check` names the column" in batch["error"]
    add_document(documents, 2, "no json")  # beside the row of the batch that waits, which need not be read again
    with pytest.raises(UsageError, match="correct rows whose text is no JSON, or leave them out"):
        documents.enqueue()


def test_the_objects_of_one_document_move_together(documents: Migration) -> None:
    """The same one twice, legacy and production texts side by side, one that is missing, one that cannot be mapped."""
    documents.production.put("avatar/9", b"of the application")
    add_files(documents, 1, "image/1", "image/1", "avatar/9", "other")
    add_files(documents, 2, "image/2", "image/missing")
    add_files(documents, 3, "image/3", "image/" + "x" * 1100)
    add_files(documents, 4, "image/1", "image/4")
    documents.production.put("avatar/4", b"another")
    assert documents.migrate() == {"migrated": 1, "missing": 1, "failed": 1, "conflict": 1}
    assert read_files(documents) == {
        1: ["avatar/1", "avatar/1", "avatar/9", "other"],
        2: ["image/2", "image/missing"],
        3: ["image/3", "image/" + "x" * 1100],
        4: ["image/1", "image/4"],
    }
    documents.check_balance()
    documents.execute("delete from public.things where id > 1")
    assert outcomes(verify(documents)) == {"kept": 1}  # avatar/9 stands, whatever it was made from


def test_a_document_with_a_state_moves_and_goes_back(documents: Migration) -> None:
    documents.execute("alter table public.things add column store integer not null default 1")
    documents.plan["entries"][0] |= {"from": "", "to": "", "legacy_object": FROM, "production_object": TO}
    documents.plan["entries"][0]["moved"] = {"store": [1, 2]}
    add_files(documents, 1, "1", "2")
    add_files(documents, 2, "3")
    documents.execute("update public.things set store = 3 where id = 2")
    documents.migrate()
    moved = "select id, store from public.things order by id"
    assert documents.execute(moved) == [{"id": 1, "store": 2}, {"id": 2, "store": 3}]
    assert read_files(documents) == {1: ["1", "2"], 2: ["3"]}
    assert documents.production.read("avatar/2") == b"body of 2"
    assert outcomes(verify(documents)) == {"kept": 1}
    assert outcomes(revert(documents)) == {"migrated": 1}
    assert documents.execute(moved) == [{"id": 1, "store": 1}, {"id": 2, "store": 3}]


def test_a_column_generated_from_the_document_follows_it(documents: Migration) -> None:
    documents.execute(
        "alter table public.things add column first text generated always as (data::json #>> '{files,0}') stored"
    )
    add_files(documents, 1, "image/1")
    documents.migrate()
    assert documents.execute("select first from public.things") == [{"first": "avatar/1"}]


@pytest.mark.versions
def test_documents_that_cannot_be_read_are_refused_before_postgresql_16(any_database: str) -> None:
    with closing(EntryTable(any_database)) as table:
        table.execute("create table public.things (id bigint primary key, data text)")
        table.execute("insert into public.things values (1, '{\"id\": \"image/1\"}'), (2, 'no json')")
        table.plan["entries"][0] |= {"table": "public.things", "key": "data", "path": "$.id"}
        (version,) = table.execute("show server_version_num")
        found = row_problems(table)
        if int(version["server_version_num"]) < 160000:
            assert found == ["public.things.data cannot be read: invalid input syntax for type json"]
            table.plan["entries"][0]["where"] = "data like '{%'"
            found = row_problems(table)
        assert found == []
        assert move_all(table, table.read_plan().entries[0]) == 1
