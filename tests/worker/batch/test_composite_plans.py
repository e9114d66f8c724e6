"""The rows of a batch are read, updated and observed by the index of their ids, be they of one, two or three columns.

Pages and rows are counted, never time.
"""

from contextlib import closing

import pytest

from rowferry.batch import Outcome
from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.plan import Entries
from rowferry_worker.batch.row_update import RowChange, find_excused, update_rows
from rowferry_worker.batch.sources.table import read_entries
from support.entries.entry_table import FROM, TO, trusted
from support.postgres.plans import Plan, explained

ROWS = 100_000
TABLE = """
    create table public.things as
    select i::bigint as id, 't' || i %% 100 as tenant, '2026-01-01'::date + i / 1000 as day, 'image/' || i as path
    from generate_series(1, %s) as i
"""
FORMS = {"one": ("id",), "two": ("tenant", "id"), "three": ("day", "tenant", "id")}


def check_by_index(plans: list[Plan], most_pages: int) -> None:
    assert [(plan.kinds, plan.text) for plan in plans if plan.scanned() & {"things"}] == []
    assert {name for plan in plans for name in plan.indexes} == {"things_pkey"}
    assert max(plan.most_rows() for plan in plans) < 501  # it is a mean
    assert sum(plan.touched for plan in plans) <= most_pages


@pytest.mark.versions
@pytest.mark.parametrize("form", FORMS)
def test_a_batch_is_read_and_written_by_its_index(form: str, any_database: str) -> None:
    columns = FORMS[form]
    with closing(connect("worker test")) as worker:
        worker.execute(trusted(TABLE).as_bytes(worker), (ROWS,))
        worker.execute(f"alter table public.things add primary key ({', '.join(columns)})".encode())
        worker.execute("analyze public.things")
        worker.commit()
        queries = EntryQueries.of(worker, Entries("public.things", columns, "path", FROM, TO))
        order = ", ".join(columns)
        texts = (
            columns[0] + "::text" if len(columns) == 1 else f"jsonb_build_array({'::text, '.join(columns)}::text)::text"
        )
        query = f"select {texts} as text from public.things order by {order} offset 40000 limit 500"
        ids = [row["text"] for row in worker.execute(query.encode())]
        with explained(worker) as plans:
            found = read_entries(worker, queries, ids[0], ids[-1])
            assert [entry.id for entry in found] == ids
            check_by_index(plans.take(), 500 + 100)
            moves = [RowChange(entry, (entry.key.replace(FROM, TO),)) for entry in found]
            assert {result.outcome for result in update_rows(worker, queries, moves)} == {Outcome.MIGRATED}
            check_by_index([plan for plan in plans.take() if "update" in plan.text], 500 * 25)
            assert {result.outcome for result in find_excused(worker, queries, found, "legacy").values()} == {
                Outcome.CHANGED
            }
            check_by_index(plans.take(), 500 * 10)


PARTITIONED = """
    create table public.things (day date, id bigint, path text, primary key (day, id)) partition by range (day)
"""
PARTITIONS = """
    select format('create table public.things_%s partition of public.things for values from (%L) to (%L)', i, d, d + 1)
        as statement
    from (select i, '2026-01-01'::date + i as d from generate_series(0, 19) as i) as p
"""
FILL = "insert into public.things select '2026-01-01'::date + i % 20, i, 'image/' || i from generate_series(1, 20000) i"


@pytest.mark.versions
def test_a_batch_writes_to_its_partition_and_reads_no_other(any_database: str) -> None:
    """Its ids begin with the column that the table is partitioned by."""
    with closing(connect("worker test")) as worker:
        worker.execute(PARTITIONED)
        for row in worker.execute(PARTITIONS.encode()).fetchall():
            worker.execute(row["statement"].encode())
        worker.execute(FILL.encode())
        worker.execute("analyze public.things")
        worker.commit()
        queries = EntryQueries.of(worker, Entries("public.things", ("day", "id"), "path", FROM, TO))
        with explained(worker) as plans:
            found = read_entries(worker, queries, '["2026-01-10", "0"]', '["2026-01-10", "10000"]')
            assert len(found) == 500
            assert sum(plan.touched for plan in plans.take()) <= 500 + 100 * 3
            moves = [RowChange(entry, (entry.key.replace(FROM, TO),)) for entry in found]
            assert {result.outcome for result in update_rows(worker, queries, moves)} == {Outcome.MIGRATED}
            assert len(find_excused(worker, queries, found, "legacy")) == 500
            read = [plan for plan in plans.take() if "things" in plan.text]
            assert len(read) == 3
            assert {name for plan in read for name in plan.tables if name.startswith("things_")} == {"things_9"}
            assert sum(plan.touched for plan in read) <= 500 * 40
