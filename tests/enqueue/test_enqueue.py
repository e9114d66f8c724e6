"""An enqueue puts what is legacy and does not wait yet in the queue, and nothing else."""

import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from rowferry.plan_file import parse_plan
from support.entries.entry_table import EntryTable
from support.queue.waiting_ranges import finish, two_tables


def test_ranges_follow_the_order_of_the_ids_and_are_full_and_a_second_enqueue_adds_nothing(table: EntryTable) -> None:
    table.add_legacy(range(1, 251))
    (done,) = table.enqueue(100)
    assert (done.label, done.batches, done.entries) == ("public.avatars.path", 3, 250)
    assert table.ranges() == [("1", "100"), ("101", "200"), ("201", "250")]
    before = table.batches()
    assert [batch["entry_count"] for batch in before] == [100, 100, 50]
    assert {batch["status"] for batch in before} == {"INIT"}
    (done,) = table.enqueue(4)
    assert (done.batches, done.entries) == (0, 0)
    assert table.batches() == before


LATER = (
    ([*range(100, 110)], 10, [5, 7, 500], 10, [("5", "7"), ("500", "500")], [2, 1]),
    ([10, 11], 10, [1, 20], 10, [("1", "1"), ("20", "20")], [1, 1]),  # no range reaches across a waiting one
    ([10, 20], 10, [15], 10, [], []),  # what is within a waiting range is left to its batch
    ([100, 200], 1, [90, 91, *range(101, 106)], 5, [("90", "91"), ("101", "103"), ("104", "105")], [2, 3, 2]),
)
"""Ids that wait, the size of their batches, ids that came later and their batches' size, new ranges and their sizes.

Entries are cut after each batch size from the first one on, and wherever a range waits.
"""


def test_entries_that_came_later_are_picked_up_beside_the_ranges_that_wait(
    table: EntryTable, subtests: pytest.Subtests
) -> None:
    """Else a batch would hold the entries of another as well, and both workers would be at them."""
    for first, first_size, later, size, ranges, sizes in LATER:
        table.execute("truncate public.avatars")
        table.execute("delete from rowferry.batch_queue")
        table.add_legacy(first)
        waiting = table.enqueue(first_size)[0].batches
        table.add_legacy(later)
        (done,) = table.enqueue(size)
        with subtests.test(f"{first} {later}"):
            assert (table.ranges()[waiting:], done.entries) == (ranges, sum(sizes))
            assert [batch["entry_count"] for batch in table.batches()[waiting:]] == sizes


def test_a_narrow_range_within_a_wide_one_uncovers_nothing(table: EntryTable) -> None:
    """As where batches that were done are put back in the queue, while others cover their entries again."""
    table.add_legacy(range(0, 60, 2)).enqueue(30)
    narrow = {"entries": "public.avatars.path", "first": "10", "last": "12", "on_conflict": "fail"}
    table.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) "
        "select migration_id, queue_name, %s, 2 from rowferry.batch_queue",
        [Jsonb(narrow)],
    )
    assert table.enqueue(5)[0].entries == 0
    table.add_legacy([61])
    assert table.enqueue(5)[0].entries == 1


NAMES = (("public", "waiting", "id", "path"), ('My "Schema', "100% Avatars", "the % id", "Key"))
"""One has the name of a part of our statements, and the other needs quotes."""


@pytest.mark.parametrize("names", NAMES)
def test_a_table_may_have_any_name(table: EntryTable, names: tuple[str, ...]) -> None:
    schema, name, row_id, key = map(sql.Identifier, names)
    where = sql.SQL("{}.{}").format(schema, name)
    table.execute(sql.SQL("create schema if not exists {}").format(schema))
    table.execute(sql.SQL("create table {} ({} bigint primary key, {} text)").format(where, row_id, key))
    table.plan["entries"][0] |= {"table": where.as_string(), "id": names[2], "key": names[3]}
    for number in (7, 8):
        table.execute(sql.SQL("insert into {} values ({}, {})").format(where, number, f"image/{number}"))
        assert table.enqueue()[0].entries == 1
    assert table.ranges() == [("7", "7"), ("8", "8")]


def test_batches_in_error_wait_for_a_requeue_and_what_is_legacy_after_done_is_enqueued_again(table: EntryTable) -> None:
    """The application may have written a legacy key into a row behind the worker's back: the next pass finds it."""
    table.add_legacy(range(1, 11)).enqueue(5)
    first, second = table.batches()
    finish(table, first, "ERROR")
    finish(table, second, "DONE")
    assert table.enqueue(5)[0].entries == 0
    table.execute("update public.avatars set path = 'image/new' where id = 9")
    assert table.enqueue(10)[0].entries == 1
    assert table.ranges()[2] == ("9", "9")


def test_only_legacy_keys_that_meet_the_condition_are_entries(table: EntryTable) -> None:
    table.insert({"1": "avatar/1", "2": None, "3": "elsewhere/3", "4": "image/4", "5": "Image/5", "6": "image"})
    assert table.enqueue()[0].entries == 1
    assert table.ranges() == [("4", "4")]
    table.plan["migration"]["name"] = "some"
    table.plan["entries"][0]["where"] = "id % 2 = 0 and path not like '%skip%'"
    table.add_legacy(range(10, 20)).insert({"22": "image/skip"})
    assert table.enqueue()[0].entries == 6
    assert table.ranges()[1:] == [("4", "18")]


def test_the_limit_counts_entries_over_all_tables(table: EntryTable) -> None:
    two_tables(table)
    assert [done.entries for done in table.preview(4, limit=10)] == [10, 0]
    assert [(done.label, done.entries) for done in table.enqueue(4, limit=13)] == [
        ("public.avatars.path", 10),
        ("public.covers.path", 3),
    ]
    names = [batch["payload"]["entries"] for batch in table.batches()]
    assert names == ["public.avatars.path"] * 3 + ["public.covers.path"]
    assert sum(batch["entry_count"] for batch in table.batches()) == 13
    assert [done.entries for done in table.enqueue(4, limit=2)] == [0, 2]
    assert [done.entries for done in table.enqueue(4)] == [0, 5]


def test_two_columns_of_one_table_are_enqueued_each_for_itself(table: EntryTable) -> None:
    table.execute("alter table public.avatars add column thumbnail text")
    table.plan["entries"].append({**table.plan["entries"][0], "key": "thumbnail", "from": "thumb/", "to": "small/"})
    table.add_legacy(range(10))
    table.execute("update public.avatars set thumbnail = 'thumb/' || id where id < 4")
    assert [(done.label, done.entries) for done in table.enqueue(100)] == [
        ("public.avatars.path", 10),
        ("public.avatars.thumbnail", 4),
    ]
    assert table.ranges() == [("0", "9"), ("0", "3")]
    assert sum(done.entries for done in table.enqueue(100)) == 0


def test_a_dry_run_says_the_same_and_writes_nothing(table: EntryTable) -> None:
    two_tables(table)
    planned = table.preview(4, limit=15)
    assert table.execute("select from rowferry.migration") == []
    assert table.batches() == []
    assert planned == table.enqueue(4, limit=15)
    planned = table.preview(4)
    assert [done.entries for done in planned] == [0, 5]
    assert planned == table.enqueue(4)


def test_batches_carry_what_the_worker_needs_and_the_stored_plan_is_the_one_that_was_read(table: EntryTable) -> None:
    table.plan["migration"]["max_attempts"] = 3
    table.plan["entries"][0]["where"] = "id > 0"
    table.add_legacy([1]).enqueue(on_conflict="keep")
    batch = table.batch()
    assert batch["payload"] == {"entries": "public.avatars.path", "first": "1", "last": "1", "on_conflict": "keep"}
    assert (batch["queue_name"], batch["max_attempts"], batch["attempts"]) == ("migrate", 3, 0)
    (row,) = table.execute("select plan, passes, revision from rowferry.migration")
    assert parse_plan(row["plan"], "stored") == table.read_plan()
    assert (row["passes"], row["revision"]) == (1, 1)
