"""An enqueue covers every legacy entry exactly once, whatever the ids, and however many run it at once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from threading import Barrier
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from rowferry.db.connection import Connection, fetch_one
from rowferry.db.timeouts import LOCK_TIMEOUT
from rowferry_enqueue import enqueue as enqueueing
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_queues.migrate.spec import MIGRATE
from support.entries.entry_table import FROM, TABLE, TO, EntryTable, Record, trusted
from support.processes.processes import wait_for
from support.queue.waiting_ranges import MISCOUNTED, NOT_IN_ONE_RANGE, OVERLAPS, finish

BIGINT = sql.SQL("bigint")
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

THOROUGH = {"bigint", "text"}
"""Where the ranges themselves are tried with many examples; the others differ in how ids are read and compared."""
MANY, FEW = 25, 8


@pytest.mark.by_day("uuid", "text")
@pytest.mark.parametrize("id_type", ID_TYPES)
def test_every_legacy_entry_is_in_exactly_one_waiting_range(id_type: str, table: EntryTable) -> None:
    """Whatever the ids, the batch sizes, what became of earlier batches, and what came later."""
    check_ranges(table, id_type, ID_TYPES[id_type], examples=MANY if id_type in THOROUGH else FEW)


def test_ranges_follow_the_collation_of_the_id_column(distribution_database: str) -> None:
    with closing(EntryTable(distribution_database)) as table:
        if not table.execute("select 1 from pg_collation where collname = 'und-x-icu'"):
            pytest.skip("this PostgreSQL sorts in one way only")
        check_ranges(table, 'text collate "und-x-icu"', LETTERS)


def check_ranges(table: EntryTable, id_type: str, ids_of_type: st.SearchStrategy[str], examples: int = FEW) -> None:
    ordered, type_of_ids = trusted(id_type.replace("varchar(9)", "text")), trusted(id_type.partition(" ")[0])

    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def check(data: st.DataObject) -> None:
        empty(table, id_type)
        ids = data.draw(st.lists(ids_of_type, unique=True, min_size=8, max_size=30))
        forms = data.draw(st.lists(st.sampled_from([FROM, FROM, FROM, TO, "other/"]), min_size=30, max_size=30))
        rows = {row_id: f"{form}{number}" for number, (row_id, form) in enumerate(zip(ids, forms, strict=False))}
        later = set(data.draw(st.lists(st.sampled_from(ids), max_size=15)))
        table.insert({row_id: key for row_id, key in rows.items() if row_id not in later}).enqueue(
            data.draw(st.integers(1, 7))
        )
        for batch in table.batches():
            finish(table, batch, data.draw(st.sampled_from(["INIT", "INIT", "ERROR", "DONE"])))
        before = {batch["id"] for batch in table.batches()}
        table.insert({row_id: key for row_id, key in rows.items() if row_id in later})
        batch_size = data.draw(st.integers(1, 7))
        table.enqueue(batch_size)
        added = [batch for batch in table.batches() if batch["id"] not in before]
        assert all(1 <= batch["entry_count"] <= batch_size for batch in added)
        assert table.execute(sql.SQL(MISCOUNTED).format(type=type_of_ids), [[batch["id"] for batch in added]]) == []
        assert table.execute(sql.SQL(NOT_IN_ONE_RANGE).format(type=type_of_ids)) == []
        assert table.execute(sql.SQL(OVERLAPS).format(ordered=ordered)) == []

    check()


def empty(table: EntryTable, id_type: str) -> None:
    """Give the table no rows and ids of another type, and empty the queue."""
    table.id_type = id_type.partition(" ")[0]
    table.execute("drop table public.avatars")
    table.execute(sql.SQL(TABLE).format(type=trusted(id_type)))
    table.execute("truncate rowferry.migration, rowferry.batch_queue, rowferry.entry_failure cascade")


WAIT_FOR_LOCKS = """
select from pg_stat_activity
where wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '200 milliseconds'
"""


def test_a_second_enqueuer_waits_for_the_first_and_adds_only_the_rest(
    table: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: longer than rows that the application holds are waited for."""
    monkeypatch.setenv(LOCK_TIMEOUT, "0.05")
    table.add_legacy(range(100))
    plain = psycopg.Connection[DictRow].connect(table.dsn, autocommit=True, row_factory=dict_row)
    with plain as first, ThreadPoolExecutor(1) as pool:
        with first.transaction():
            enqueue(first, table.read_plan(), EnqueueRequest(MIGRATE, 10, limit=60))
            second = pool.submit(table.enqueue, 7)
            wait_for(lambda: second.done() or table.execute(WAIT_FOR_LOCKS))
            assert not second.done()
            assert table.batches() == []
        assert second.result(100)[0].entries == 40
    assert table.execute(sql.SQL(NOT_IN_ONE_RANGE).format(type=BIGINT)) == []


def test_many_enqueuers_at_once_do_not_double(table: EntryTable) -> None:
    table.add_legacy(range(1000))
    together = Barrier(6)

    def run(batch_size: int) -> int:
        together.wait(100)
        return table.enqueue(batch_size)[0].entries

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(run, [7, 9, 11, 13, 15, 17])) == 1000
    assert table.execute(sql.SQL(NOT_IN_ONE_RANGE).format(type=BIGINT)) == []
    assert table.execute(sql.SQL(OVERLAPS).format(ordered=BIGINT)) == []


def test_the_work_beside_waiting_ranges_grows_with_their_number_only(
    table: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after an enqueue the statistics know of none: what is done once must not be done for each."""
    table.execute("alter table rowferry.batch_queue set (autovacuum_enabled = false)")
    table.execute("analyze rowferry.batch_queue")
    table.add_legacy(range(2000)).enqueue(batch_size=2)
    plans = explain_passes(monkeypatch)
    assert [found.batches for found in table.preview(batch_size=2)] == [0]
    assert 2000 < max(map(count_rows, plans)) < 100 * 2000


@pytest.mark.parametrize("id_type", ["bigint", "text"])
def test_what_is_free_between_waiting_ranges_is_not_spilled(
    id_type: str, table: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their index gives the order of the ids; without one they are sorted, which shows that the test can fail."""
    table.execute(sql.SQL("alter table public.avatars alter id type {}").format(trusted(id_type)))
    table.add_legacy(range(20_000))
    table.execute("vacuum analyze public.avatars")
    table.enqueue(batch_size=100)
    table.execute("delete from rowferry.batch_queue where id % 2 = 0")
    for indexes in "on", "off":
        plans = explain_passes(monkeypatch, work_mem="64kB", enable_indexscan=indexes)
        assert [found.batches for found in table.preview(batch_size=100)] == [100]
        assert (max(plan.get("Temp Written Blocks", 0) for plan in plans) > 0) == (indexes == "off")


def explain_passes(monkeypatch: pytest.MonkeyPatch, **chosen: str) -> list[Record]:
    """Return a list that gets the plan of each statement of the next passes, under these settings."""
    plans: list[Record] = []

    def explain(connection: Connection, query: sql.SQL | sql.Composed, parameters: Record | None = None) -> Record:
        for setting in chosen.items():
            connection.execute("select set_config(%s, %s, true)", setting)
        explained = sql.SQL("explain (analyze, buffers, timing off, format json) ") + sql.Composed([query])
        (row,) = connection.execute(explained, parameters).fetchall()
        plans.append(row["QUERY PLAN"][0]["Plan"])
        return fetch_one(connection, query, parameters)

    monkeypatch.setattr(enqueueing, "fetch_one", explain)
    return plans


def count_rows(node: dict[str, Any]) -> float:
    """Return how many rows all nodes of a plan have given or dropped."""
    given = node["Actual Rows"] + node.get("Rows Removed by Join Filter", 0)
    return given * node["Actual Loops"] + sum(map(count_rows, node.get("Plans", [])))
