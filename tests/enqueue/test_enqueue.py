"""An enqueue puts what is legacy and does not wait yet in the queue, and nothing else."""

from psycopg.types.json import Jsonb

from support.entries.entry_table import EntryTable
from support.queue.waiting_ranges import finish, two_tables


def test_ranges_follow_the_order_of_the_ids_and_are_full(table: EntryTable) -> None:
    table.add_legacy(range(1, 251))
    (done,) = table.enqueue(100)
    assert (done.label, done.batches, done.entries) == ("public.avatars.path", 3, 250)
    assert table.ranges() == [("1", "100"), ("101", "200"), ("201", "250")]
    assert [batch["entry_count"] for batch in table.batches()] == [100, 100, 50]
    assert {batch["status"] for batch in table.batches()} == {"INIT"}


def test_a_second_enqueue_adds_nothing(table: EntryTable) -> None:
    table.add_legacy(range(25))
    table.enqueue(10)
    before = table.batches()
    (done,) = table.enqueue(4)
    assert (done.batches, done.entries) == (0, 0)
    assert table.batches() == before


def test_entries_that_came_later_are_picked_up(table: EntryTable) -> None:
    table.add_legacy(range(100, 110))
    table.enqueue(10)
    table.add_legacy([5, 7, 500])
    (done,) = table.enqueue(10)
    assert done.entries == 3
    assert table.ranges()[1:] == [("5", "7"), ("500", "500")]


def test_no_range_reaches_across_a_waiting_one(table: EntryTable) -> None:
    """Else its batch would hold the entries of the other as well, and both workers would be at them."""
    table.add_legacy([10, 11])
    table.enqueue(10)
    table.add_legacy([1, 20])
    table.enqueue(10)
    assert table.ranges() == [("10", "11"), ("1", "1"), ("20", "20")]


def test_an_entry_within_a_waiting_range_is_left_to_its_batch(table: EntryTable) -> None:
    table.add_legacy([10, 20])
    table.enqueue(10)
    table.add_legacy([15])
    assert table.enqueue(10)[0].entries == 0


def test_a_narrow_range_within_a_wide_one_uncovers_nothing(table: EntryTable) -> None:
    """As where batches that were done are put back in the queue, while others cover their entries again."""
    table.add_legacy(range(0, 60, 2))
    table.enqueue(30)
    narrow = {"entries": "public.avatars.path", "first": "10", "last": "12", "on_conflict": "fail"}
    table.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) "
        "select migration_id, queue_name, %s, 2 from rowferry.batch_queue",
        [Jsonb(narrow)],
    )
    assert table.enqueue(5)[0].entries == 0
    table.add_legacy([61])
    assert table.enqueue(5)[0].entries == 1


def test_a_stretch_between_waiting_ranges_is_cut_into_full_batches(table: EntryTable) -> None:
    table.add_legacy([100, 200])
    table.enqueue(1)
    table.add_legacy([*range(90, 92), *range(101, 111)])
    table.enqueue(5)
    assert [batch["entry_count"] for batch in table.batches()[2:]] == [2, 5, 5]


def test_a_table_may_have_the_name_of_a_part_of_our_statements(table: EntryTable) -> None:
    table.execute("alter table public.avatars rename to waiting")
    table.plan["entries"][0]["table"] = "waiting"
    table.execute("insert into public.waiting values (1, 'image/1')")
    assert table.enqueue()[0].entries == 1
    table.execute("insert into public.waiting values (2, 'image/2')")
    assert table.enqueue()[0].entries == 1


def test_batches_in_error_wait_for_a_requeue(table: EntryTable) -> None:
    table.add_legacy(range(10))
    table.enqueue(5)
    first, _ = table.batches()
    finish(table, first, "ERROR")
    assert table.enqueue(5)[0].entries == 0


def test_what_is_still_legacy_after_done_is_enqueued_again(table: EntryTable) -> None:
    """The application may have written a legacy key into a row behind the worker's back: the next pass finds it."""
    table.add_legacy(range(1, 11))
    table.enqueue(10)
    finish(table, table.batch(), "DONE")
    table.execute("update public.avatars set path = 'image/new' where id = 4")
    assert table.enqueue(10)[0].entries == 1
    assert table.ranges()[1] == ("4", "4")


def test_production_unexpected_and_null_keys_are_no_entries(table: EntryTable) -> None:
    table.insert({"1": "avatar/1", "2": None, "3": "elsewhere/3", "4": "image/4", "5": "Image/5", "6": "image"})
    assert table.enqueue()[0].entries == 1
    assert table.ranges() == [("4", "4")]


def test_the_limit_counts_entries_over_all_tables(table: EntryTable) -> None:
    two_tables(table)
    assert [done.entries for done in table.enqueue(4, limit=13)] == [10, 3]
    assert sum(batch["entry_count"] for batch in table.batches()) == 13
    assert [done.entries for done in table.enqueue(4, limit=2)] == [0, 2]
    assert [done.entries for done in table.enqueue(4)] == [0, 5]


def test_a_limit_that_the_first_table_uses_up_leaves_nothing_for_the_second(table: EntryTable) -> None:
    two_tables(table)
    assert [done.entries for done in table.enqueue(4, limit=10)] == [10, 0]


def test_two_tables_have_their_own_ranges(table: EntryTable) -> None:
    two_tables(table)
    assert [(done.label, done.entries) for done in table.enqueue(100)] == [
        ("public.avatars.path", 10),
        ("public.covers.path", 10),
    ]
    assert [batch["payload"]["entries"] for batch in table.batches()] == ["public.avatars.path", "public.covers.path"]


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


def test_where_chooses_the_rows_that_are_entries(table: EntryTable) -> None:
    table.plan["entries"][0]["where"] = "id % 2 = 0 and path not like '%skip%'"
    table.add_legacy(range(10))
    table.insert({"12": "image/skip"})
    assert table.enqueue()[0].entries == 5
    assert table.ranges() == [("0", "8")]


def test_names_that_need_quoting_are_quoted(table: EntryTable) -> None:
    table.execute('create schema "My ""Schema"')
    table.execute(
        'create table "My ""Schema"."100%% Avatars" ("the %% id" bigint primary key, "Key" text)'.replace("%%", "%")
    )
    table.execute("""insert into "My ""Schema"."100% Avatars" values (7, 'image/7')""")
    table.plan["entries"][0] |= {"table": '"My ""Schema"."100% Avatars"', "id": "the % id", "key": "Key"}
    assert table.enqueue()[0].entries == 1
    assert table.ranges() == [("7", "7")]


def test_a_dry_run_says_the_same_and_writes_nothing(table: EntryTable) -> None:
    two_tables(table)
    planned = table.preview(4, limit=15)
    assert table.execute("select from rowferry.migration") == []
    assert table.batches() == []
    assert planned == table.enqueue(4, limit=15)
    planned = table.preview(4)
    assert [done.entries for done in planned] == [0, 5]
    assert planned == table.enqueue(4)


def test_batches_carry_what_the_worker_needs(table: EntryTable) -> None:
    table.plan["migration"]["max_attempts"] = 3
    table.add_legacy([1])
    table.enqueue(on_conflict="keep")
    batch = table.batch()
    assert batch["payload"] == {"entries": "public.avatars.path", "first": "1", "last": "1", "on_conflict": "keep"}
    assert (batch["queue_name"], batch["max_attempts"], batch["attempts"]) == ("migrate", 3, 0)


def test_the_stored_plan_is_the_one_that_was_read(table: EntryTable) -> None:
    from rowferry.plan_file import parse_plan

    table.plan["entries"][0]["where"] = "id > 3"
    table.enqueue()
    (row,) = table.execute("select plan, passes, revision from rowferry.migration")
    assert parse_plan(row["plan"], "stored") == table.read_plan()
    assert (row["passes"], row["revision"]) == (1, 1)
