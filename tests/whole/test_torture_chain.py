"""The auditor of the scenario `chain` finds an entry that a queue lost, was given twice, or did twice."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rowferry_queues.migrate.spec import MIGRATE
from rowferry_queues.verify.spec import VERIFY
from support.entries.entry_table import EntryTable
from support.queue.plug_in import NOTES
from torture.scenarios.chain import FIRST, ITEMS, SECOND, check_chain, check_notes

ROWS, ITEM_COUNT = 3, 2
BATCH = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, migrated, status)
select id, %s, '{"entries": "public.avatars.path"}', %s, %s, 'DONE' from rowferry.migration
"""
AGAIN = f"""
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, migrated, status)
select id, '{VERIFY.name}', '{{}}', 1, 1, 'DONE' from rowferry.migration
"""
SEEDED: dict[str, tuple[Callable[[Any, int], Any], str, str]] = {
    "handed on twice": (check_chain, AGAIN, VERIFY.name),
    "never handed on": (check_chain, f"delete from rowferry.batch_queue where queue_name = '{SECOND}'", SECOND),
    "not settled": (
        check_chain,
        f"update rowferry.batch_queue set status = 'ERROR', migrated = 2, failed = 1 where queue_name = '{FIRST}'",
        FIRST,
    ),
    "a tally that is off": (
        check_chain,
        "update rowferry.batch_tally set counts.migrated = (counts).migrated + 1",
        MIGRATE.name,
    ),
    "lost": (check_notes, f"delete from public.notes where queue = '{FIRST}' and id = '2'", f"{FIRST} lost 1"),
    "done twice": (check_notes, "update public.notes set times = 2 where id = 'item 1'", f"{SECOND} did 1"),
    "of nobody": (check_notes, f"insert into public.notes values ('{ITEMS}', 'item 9')", f"{ITEMS} was given 1"),
}


@pytest.fixture
def world(table: EntryTable) -> Any:
    """A chain that has come to its end, as the checks look at it."""
    table.add_legacy([0])
    table.enqueue()  # which stores the plan
    table.execute("delete from rowferry.batch_queue")
    table.execute(NOTES)
    every = ROWS + ITEM_COUNT
    for queue, entries in {
        MIGRATE.name: ROWS,
        VERIFY.name: ROWS,
        FIRST: ROWS,
        SECOND: every,
        ITEMS: ITEM_COUNT,
    }.items():
        table.execute(BATCH, (queue, entries, entries))
    rows = [str(number) for number in range(1, ROWS + 1)]
    items = [f"item {number}" for number in range(1, ITEM_COUNT + 1)]
    for queue, ids in {FIRST: rows, SECOND: rows + items, ITEMS: items}.items():
        table.execute("insert into public.notes (queue, id) select %s, unnest(%s::text[])", (queue, ids))
    return SimpleNamespace(entries=ROWS, query=lambda query, *values: table.execute(query, values), table=table)


def test_a_chain_that_adds_up_is_left_in_peace(world: Any) -> None:
    assert [*check_chain(world, ITEM_COUNT), *check_notes(world, ITEM_COUNT)] == []


@pytest.mark.parametrize("fault", SEEDED)
def test_the_account_of_a_chain_finds_an_entry(fault: str, world: Any) -> None:
    check, seed_fault, expected = SEEDED[fault]
    world.table.execute(seed_fault)
    assert any(expected in words for words in check(world, ITEM_COUNT))
