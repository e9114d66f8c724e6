"""A check says which rows could not go back, because SQL of the plan reads what the migration rewrites."""

from typing import Any

import pytest

from rowferry.errors import UsageError
from support.entries.checks import check_rows_of, entries_of, row_problems
from support.entries.entry_table import EntryTable

MOVED: dict[str, Any] = {"from": "", "to": "", "moved": {"store": ["old", "new"]}}


@pytest.fixture
def table(table: EntryTable) -> EntryTable:
    """Two legacy rows and one that moved before, with a column of states and one that is generated."""
    table.execute("alter table public.avatars add column store text default 'old', add column name text")
    table.execute(
        "alter table public.avatars add column folder text generated always as (split_part(path, '/', 1)) stored"
    )
    table.insert({"1": "image/1", "2": "image/2", "3": "avatar/3"})
    table.execute("update public.avatars set name = id::text, store = case id when 3 then 'new' else 'old' end")
    return table


def notes(table: EntryTable) -> list[str]:
    return [found.what for found in check_rows_of(table) if "verify and revert" in found.what]


LEAVES = ({}, "path like 'image/%'"), ({}, "folder = 'image'"), (MOVED, "store = 'old'"), (MOVED, "store <> 'new'")


@pytest.mark.parametrize(("change", "where"), LEAVES)
def test_rows_that_leave_their_condition_are_noted_and_not_reverted(
    table: EntryTable, change: dict[str, Any], where: str
) -> None:
    entries_of(table).update(change, where=where)
    assert notes(table) == [
        "public.avatars.path: 2 rows do not meet `where` any more once its rows have moved, "
        "so verify and revert could not find them, for example id 1"
    ]
    for queue in ("verify", "revert"):
        words = rf"^{queue.capitalize()} cannot work on public.avatars.path: 1 row does not meet"
        for refused in (table.enqueue, table.preview):
            with pytest.raises(UsageError, match=words):
                refused(queue=queue)
    assert table.enqueue()[0].entries == 2


STORE = {"moved": {"store": ["old", "new"]}}
GO_BACK: tuple[dict[str, Any], ...] = (
    {"where": "id < 10"},
    {"where": "path is not null"},
    {"where": "folder in ('image', 'avatar')"},
    {**MOVED, "where": "store in ('old', 'new') and name <> '%'"},
    {**MOVED, "where": "path not like 'zzz'"},
    {"where": "tableoid = 'public.avatars'::regclass"},
    {**STORE, "objects": "'image/' || id"},
    {**STORE, "objects": "'image/' || split_part(path, '/', 2)"},
)


@pytest.mark.parametrize("change", GO_BACK)
def test_what_says_the_same_before_and_after_goes_back(table: EntryTable, change: dict[str, Any]) -> None:
    entries_of(table).update(change)
    assert notes(table) == []
    table.enqueue(queue="revert")


def test_objects_that_are_named_by_rewritten_columns_are_noted_and_not_reverted(table: EntryTable) -> None:
    for expression in (
        "path || '.png'",
        "array['image/' || folder || id]",
        "case store when 'old' then 'image/' || id end",
    ):
        entries_of(table).update(objects=expression, **STORE)
        (found,) = notes(table)
        assert found.startswith("public.avatars.path: `objects` yields other keys for 2 rows once its rows have moved")
        words = r"Revert cannot work on public.avatars.path: .* yields other keys for 1 row"
        with pytest.raises(UsageError, match=words):
            table.enqueue(queue="revert")


def test_a_document_is_rewritten_before_it_is_compared(table: EntryTable) -> None:
    table.execute("create table public.photos (id bigint primary key, data jsonb)")
    table.execute("""insert into public.photos values (1, '{"id": "image/1", "n": 7}')""")
    table.plan["entries"] = [
        {"table": "public.photos", "id": "id", "key": "data", "path": "$.id", "from": "image/", "to": "avatar/"}
    ]
    entries_of(table)["where"] = "data ->> 'n' = '7'"
    assert notes(table) == []
    entries_of(table)["where"] = "data ->> 'id' like 'image%'"
    assert len(notes(table)) == 1


def test_entries_whose_rows_change_what_others_say_are_a_problem(table: EntryTable) -> None:
    other = {"key": "name", "from": "", "to": "new/", "where": "path like 'i%'"}
    table.plan["entries"].append({**entries_of(table), **other})
    (found,) = row_problems(table)
    words = "public.avatars.name: 2 rows do not meet `where` any more once rows of public.avatars.path have moved"
    assert words in found
