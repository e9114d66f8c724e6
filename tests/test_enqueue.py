"""An enqueue covers every legacy entry exactly once, however often and by however many it is run."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from threading import Barrier

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row

from entry_table import FROM, TO, EntryTable, Record
from processes import wait_for
from rowferry.errors import UserMistake
from rowferry.session import LOCK_TIMEOUT
from rowferry_enqueue.enqueue import Request, enqueue

LETTERS = st.text("aAbBzZäÄß-_ 0.", max_size=4)
ID_TYPES: dict[str, st.SearchStrategy[str]] = {
    "bigint": st.integers(-(2**63), 2**63 - 1).map(str),
    "uuid": st.uuids().map(str),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4),
    'text collate "C"': LETTERS,
    "varchar(9)": LETTERS,
    "numeric": st.decimals(-999, 999, allow_nan=False, places=3).map(str),
    "timestamptz": st.datetimes(datetime(1, 1, 2)).map("{}+00".format),  # noqa: DTZ001
}

NOT_IN_ONE_RANGE = """
    select a.id::text as id, count(q.id) as ranges
    from public.avatars as a
    left join rowferry.batch_queue as q
        on q.status in ('INIT', 'ERROR')
        and a.id between (q.payload ->> 'first')::{type} and (q.payload ->> 'last')::{type}
    where a.path like 'image/%'
    group by a.id
    having count(q.id) <> 1
"""
OVERLAPS = """
    select q.id, r.id
    from rowferry.batch_queue as q
    inner join rowferry.batch_queue as r
        on q.id < r.id
        and (q.payload ->> 'first')::{ordered} <= (r.payload ->> 'last')::{ordered}
        and (r.payload ->> 'first')::{ordered} <= (q.payload ->> 'last')::{ordered}
    where q.status in ('INIT', 'ERROR') and r.status in ('INIT', 'ERROR')
"""
MISCOUNTED = """
    select q.id
    from rowferry.batch_queue as q
    where q.id = any(%s) and q.entry_count <> (
        select count(*) from public.avatars as a
        where a.path like 'image/%%'
        and a.id between (q.payload ->> 'first')::{type} and (q.payload ->> 'last')::{type}
    )
"""


def finish(table: EntryTable, batch: Record, status: str) -> None:
    """Let a batch end as a worker would have it end."""
    bounds = (batch["payload"]["first"], batch["payload"]["last"])
    if status == "DONE":
        between = f"id between %s::{table.id_type} and %s::{table.id_type}"
        table.execute(f"update public.avatars set path = replace(path, 'image/', 'avatar/') where {between}", bounds)
    counts = {"DONE": "migrated = entry_count", "ERROR": "failed = entry_count", "INIT": "worker_id = null"}[status]
    query = f"update rowferry.batch_queue set status = %s, {counts} where id = %s"
    table.execute(query, (status, batch["id"]))


@pytest.mark.parametrize("id_type", ID_TYPES)
def test_every_legacy_entry_is_in_exactly_one_waiting_range(id_type: str, table: EntryTable) -> None:
    """Whatever the ids, the batch sizes, what became of earlier batches, and what came later."""
    check_ranges(table, id_type, ID_TYPES[id_type])


def test_ranges_follow_the_collation_of_the_id_column(any_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", any_database)
    with closing(EntryTable(any_database)) as table:
        if not table.execute("select 1 from pg_collation where collname = 'und-x-icu'"):
            pytest.skip("this PostgreSQL sorts in one way only")
        check_ranges(table, 'text collate "und-x-icu"', LETTERS)


def check_ranges(table: EntryTable, id_type: str, ids_of_type: st.SearchStrategy[str]) -> None:
    ordered = id_type.replace("varchar(9)", "text")

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def check(data: st.DataObject) -> None:
        empty(table, id_type)
        ids = data.draw(st.lists(ids_of_type, unique=True, min_size=8, max_size=30))
        forms = data.draw(st.lists(st.sampled_from([FROM, FROM, FROM, TO, "other/"]), min_size=30, max_size=30))
        rows = {row_id: f"{form}{number}" for number, (row_id, form) in enumerate(zip(ids, forms, strict=False))}
        later = set(data.draw(st.lists(st.sampled_from(ids), max_size=15)))
        table.insert({row_id: key for row_id, key in rows.items() if row_id not in later})
        table.enqueue(data.draw(st.integers(1, 7)))
        for batch in table.batches():
            finish(table, batch, data.draw(st.sampled_from(["INIT", "INIT", "ERROR", "DONE"])))
        before = {batch["id"] for batch in table.batches()}
        table.insert({row_id: key for row_id, key in rows.items() if row_id in later})
        batch_size = data.draw(st.integers(1, 7))
        table.enqueue(batch_size)
        added = [batch for batch in table.batches() if batch["id"] not in before]
        assert all(1 <= batch["entry_count"] <= batch_size for batch in added)
        assert table.execute(MISCOUNTED.format(type=table.id_type), [[batch["id"] for batch in added]]) == []
        assert table.execute(NOT_IN_ONE_RANGE.format(type=table.id_type)) == []
        assert table.execute(OVERLAPS.format(ordered=ordered)) == []

    check()


def empty(table: EntryTable, id_type: str) -> None:
    """Give the table no rows and ids of another type, and empty the queue."""
    table.id_type = id_type.partition(" ")[0]
    table.execute("drop table public.avatars")
    table.execute(f"create table public.avatars (id {id_type} primary key, path text)")
    table.execute("truncate rowferry.migration, rowferry.batch_queue, rowferry.entry_failure")


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


def two_tables(table: EntryTable) -> None:
    """Give the plan a second table with the same ids."""
    table.execute("create table public.covers (like public.avatars including all)")
    table.plan["entries"].append({**table.plan["entries"][0], "table": "public.covers"})
    table.add_legacy(range(10))
    table.execute("insert into public.covers select * from public.avatars")


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


CHANGES = {
    "legacy bucket": lambda plan: plan["legacy"].update(bucket="another"),
    "production endpoint": lambda plan: plan["production"].update(endpoint_url="http://elsewhere"),
    "prefix": lambda plan: plan["entries"][0].update(to="portrait/"),
    "where": lambda plan: plan["entries"][0].update(where="id > 5"),
    "no such entries": lambda plan: plan["entries"][0].update(table="public.covers"),
}


@pytest.mark.parametrize("status", ["INIT", "ERROR"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_plan_is_refused_while_batches_of_the_old_one_wait(
    change: str, status: str, table: EntryTable
) -> None:
    two_tables(table)
    del table.plan["entries"][1]
    table.plan["migration"]["name"] = "Avatars"
    table.enqueue(limit=5)
    finish(table, table.batch(), status)
    before = table.execute("select * from rowferry.migration"), table.batches()
    CHANGES[change](table.plan)
    with pytest.raises(UserMistake, match=r'^Migration "Avatars" has 1 batches waiting or in ERROR .*[^.]\.$'):
        table.enqueue()
    assert (table.execute("select * from rowferry.migration"), table.batches()) == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_plan_is_taken_once_nothing_waits(change: str, table: EntryTable) -> None:
    two_tables(table)
    del table.plan["entries"][1]
    table.enqueue(limit=5)
    finish(table, table.batch(), "DONE")
    CHANGES[change](table.plan)
    assert table.enqueue()[0].entries > 0
    assert table.execute("select revision from rowferry.migration") == [{"revision": 2}]


def test_entries_may_be_added_to_a_plan_whose_batches_wait(table: EntryTable) -> None:
    two_tables(table)
    second = table.plan["entries"].pop()
    table.enqueue()
    table.plan["entries"].append(second)
    table.plan["legacy"]["profile"] = "another"
    assert [done.entries for done in table.enqueue()] == [0, 10]


def test_two_migrations_of_one_table_do_not_see_each_other(table: EntryTable) -> None:
    table.add_legacy(range(10))
    table.enqueue()
    table.plan["migration"]["name"] = "others"
    assert table.enqueue()[0].entries == 10


@pytest.mark.parametrize("mistake", [{"table": "public.nothing"}, {"id": "nothing"}, {"key": "nothing"}])
def test_a_plan_that_does_not_fit_adds_nothing(mistake: dict[str, str], table: EntryTable) -> None:
    two_tables(table)
    table.plan["entries"][1] |= mistake
    with pytest.raises(UserMistake, match="nothing"):
        table.enqueue()
    assert table.batches() == []
    assert table.execute("select from rowferry.migration") == []


def test_a_second_enqueuer_waits_for_the_first_and_adds_only_the_rest(
    table: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: longer than rows that the application holds are waited for."""
    monkeypatch.setenv(LOCK_TIMEOUT, "0.05")
    table.add_legacy(range(100))
    with connect_plainly(table.dsn) as first, ThreadPoolExecutor(1) as pool:
        with first.transaction():
            enqueue(first, table.read_plan(), Request(10, limit=60))
            second = pool.submit(table.enqueue, 7)
            wait_for(lambda: second.done() or is_waiting_for_lock(table, timedelta(milliseconds=200)))
            assert not second.done()
            assert table.batches() == []
        assert second.result(15)[0].entries == 40
    assert table.execute(NOT_IN_ONE_RANGE.format(type="bigint")) == []


def connect_plainly(dsn: str) -> psycopg.Connection[dict[str, object]]:
    return psycopg.connect(dsn, autocommit=True, row_factory=dict_row)


def is_waiting_for_lock(table: EntryTable, since: timedelta) -> bool:
    waiting = "wait_event_type = 'Lock' and clock_timestamp() - query_start > %s"
    return bool(table.execute(f"select from pg_stat_activity where {waiting}", [since]))


def test_many_enqueuers_at_once_do_not_double(table: EntryTable) -> None:
    table.add_legacy(range(1000))
    together = Barrier(6)

    def run(batch_size: int) -> int:
        together.wait(15)
        return table.enqueue(batch_size)[0].entries

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(run, [7, 9, 11, 13, 15, 17])) == 1000
    assert table.execute(NOT_IN_ONE_RANGE.format(type="bigint")) == []
    assert table.execute(OVERLAPS.format(ordered="bigint")) == []
