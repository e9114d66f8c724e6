"""What a pass over rows that stay takes: since when, which batches in ERROR, and what a preview says of it."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.plan_file import plan_document
from rowferry_enqueue.passes import FURTHEST_WEST, Pass, preview_pass
from support.entries.entry_table import EntryTable

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def plan_for(*tables: str) -> list[dict[str, Any]]:
    common = {"id": "id", "key": "path", "from": "", "to": "", "rows": "stay", "changed": "updated_at"}
    return [{"table": f"public.{name}", **common} for name in tables]


def make_files(table: EntryTable, column_type: str = "timestamptz", *, name: str = "files") -> None:
    table.execute(f"create table public.{name} (id bigint primary key, path text, updated_at {column_type})")


def add(table: EntryTable, *numbers: int, changed: Any = LONG_AGO, name: str = "files") -> None:
    for number in numbers:
        table.execute(f"insert into public.{name} values (%s, %s, %s)", (number, f"f{number}", changed))


@pytest.fixture
def files(table: EntryTable) -> EntryTable:
    """Three rows that changed long ago, and stay."""
    make_files(table)
    add(table, 1, 2, 3)
    table.plan["entries"] = plan_for("files")
    return table


def end(table: EntryTable, status: str = "DONE") -> None:
    """End all batches that wait; in ERROR, one entry has failed."""
    failed = int(status == "ERROR")
    table.execute(
        "update rowferry.batch_queue set status = %s, migrated = entry_count - %s, failed = %s, finished_at = now() "
        "where status = 'INIT'",
        (status, failed, failed),
    )


def passes(table: EntryTable) -> list[dict[str, Any]]:
    return table.execute("select * from rowferry.pass order by label, number")


def previewed(table: EntryTable) -> tuple[int, int, bool]:
    """Return batches, entries and whether a pass goes on, by a preview, which writes nothing."""
    before = passes(table), table.batches()
    (found,) = table.preview()
    assert (passes(table), table.batches()) == before
    return found.batches, found.entries, found.goes_on


def enqueued(table: EntryTable) -> tuple[int, int, bool]:
    (found,) = table.enqueue()
    return found.batches, found.entries, found.goes_on


def test_the_first_pass_takes_all_rows_and_a_later_one_what_changed_since(files: EntryTable) -> None:
    assert previewed(files) == enqueued(files) == (1, 3, False)
    assert (files.batch()["payload"]["pass"], files.batch()["payload"]["since"]) == (1, None)
    end(files)
    assert previewed(files) == enqueued(files) == (0, 0, False)
    add(files, 4, changed=datetime.now(UTC))
    assert previewed(files) == enqueued(files) == (1, 1, False)
    first, second, third = passes(files)
    assert [made["number"] for made in (first, second, third)] == [1, 2, 3]
    assert [made["since"] for made in (first, second, third)] == [None, first["watermark"], second["watermark"]]


def test_where_no_column_says_when_rows_changed_each_pass_takes_all_and_counts_in_its_own_migration(
    files: EntryTable,
) -> None:
    files.execute("select from rowferry.register_migration('another', '{}', '{}')")
    del files.plan["entries"][0]["changed"]
    files.enqueue()
    end(files)
    assert previewed(files) == enqueued(files) == (1, 3, False)
    assert [batch["payload"]["since"] for batch in files.batches()] == [None, None]
    counted = files.execute("select passes from rowferry.migration order by name = 'another'")
    assert [row["passes"] for row in counted] == [2, 0]


def test_while_batches_of_a_pass_wait_it_goes_on_and_another_plan_begins_anew(files: EntryTable) -> None:
    files.enqueue()
    assert previewed(files) == enqueued(files) == (0, 0, True)
    assert len(passes(files)) == 1
    end(files)
    files.plan["production"]["bucket"] = "another"
    assert previewed(files) == enqueued(files) == (1, 3, False)


def test_batches_in_error_take_part_in_the_next_pass_by_its_choices_and_their_own_beginning(files: EntryTable) -> None:
    """Its rows changed before the last watermark, so that the later one would leave them out."""
    files.enqueue(on_conflict="keep")
    end(files, "ERROR")
    add(files, 4, changed=datetime.now(UTC))
    assert previewed(files) == (2, 4, False)
    assert files.enqueue(on_conflict="overwrite")[0].entries == 4
    batch, _ = files.batches()
    assert (batch["status"], batch["payload"]["pass"], batch["payload"]["on_conflict"]) == ("INIT", 2, "overwrite")
    assert batch["payload"]["since"] is None
    assert passes(files)[1]["since"] is not None


def test_a_preview_is_of_the_pass_that_then_begins(files: EntryTable) -> None:
    with connect("test", autocommit=True) as connection:
        plan = files.read_plan()
        queries = EntryQueries.of(connection, plan.entries[0])
        assert preview_pass(connection, queries, "migrate", None, plan_document(plan)) == Pass(1, None)
        files.enqueue()
        end(files)
        found = preview_pass(connection, queries, "migrate", 1, plan_document(plan))
    files.enqueue()
    _, made = passes(files)
    assert found is not None
    assert (found.number, found.since) == (made["number"], made["since"].astimezone(UTC).isoformat(" "))


def test_each_tables_pass_renews_its_own_batches(table: EntryTable) -> None:
    for name in ("files", "others"):
        make_files(table, name=name)
        add(table, 1, 2, name=name)
    table.plan["entries"] = plan_for("files", "others")
    table.enqueue()
    end(table, "ERROR")
    assert [(found.entries, found.goes_on) for found in table.enqueue()] == [(2, False), (2, False)]
    assert [batch["status"] for batch in table.batches()] == ["INIT", "INIT"]
    assert [(made["label"], made["number"]) for made in passes(table)] == [
        ("public.files.path", 1),
        ("public.files.path", 2),
        ("public.others.path", 1),
        ("public.others.path", 2),
    ]


def since_of(table: EntryTable, column_type: str, *changed: Any) -> tuple[Any, datetime]:
    """Return since when the second pass takes rows, as its batch says it, and the watermark before it, in UTC."""
    make_files(table, column_type)
    add(table, *range(len(changed)), changed=None)
    for number, time in enumerate(changed):
        table.execute("update public.files set updated_at = %s where id = %s", (time, number))
    add(table, 99, changed=None)  # of no time, so each pass takes it
    table.plan["entries"] = plan_for("files")
    table.enqueue()
    end(table)
    table.enqueue()
    *_, batch = table.batches()
    assert batch["payload"]["pass"] == 2
    return batch["payload"]["since"], passes(table)[0]["watermark"].astimezone(UTC)


READ: dict[str, tuple[Any, Callable[[datetime], object], Callable[[Any], object]]] = {
    "timestamptz": (LONG_AGO, lambda watermark: watermark, datetime.fromisoformat),
    "bigint": (1_577_836_800, lambda watermark: int(watermark.timestamp()), int),
    "date": (date(2020, 1, 1), lambda watermark: (watermark - FURTHEST_WEST).date().isoformat(), str),
}
"""By type: a time, what a watermark is in it (a date: that of the place where it is earliest), and its reader."""


@pytest.mark.parametrize("column_type", READ)
def test_a_pass_takes_rows_since_the_watermark_as_the_column_writes_it(table: EntryTable, column_type: str) -> None:
    changed, expected, read = READ[column_type]
    since, watermark = since_of(table, column_type, changed)
    assert read(since) == expected(watermark)


LAGS: dict[str, tuple[list[timedelta], timedelta]] = {
    "the newest": ([timedelta(days=-9), timedelta(hours=-3), timedelta(days=9)], timedelta(hours=3)),
    "long ago": ([timedelta(days=-9)], FURTHEST_WEST),
    "unknown": ([], FURTHEST_WEST),
}
"""Times from now on, of which one that is to come says nothing, and how far behind they are."""


@pytest.mark.parametrize("name", LAGS)
def test_a_time_without_a_zone_is_as_far_behind_as_the_newest_and_twelve_hours_at_most(
    table: EntryTable, name: str
) -> None:
    times, expected = LAGS[name]
    now = datetime.now(UTC).replace(tzinfo=None)
    since, watermark = since_of(table, "timestamp", *(now + time for time in times))
    lag = watermark.replace(tzinfo=None) - datetime.fromisoformat(since)
    assert expected <= lag <= min(expected + timedelta(hours=1), FURTHEST_WEST)


def test_a_transaction_in_another_database_holds_no_pass_back(files: EntryTable) -> None:
    with psycopg.connect(files.dsn, dbname="postgres", autocommit=True) as other:
        other.execute("begin")
        other.execute("select")
        files.enqueue()
        other.execute("prepare transaction 'of a test'")
        end(files)
        files.enqueue()
        other.execute("rollback prepared 'of a test'")
    for made in passes(files):
        assert (made["held_back_by"], made["watermark"]) == (None, made["began_at"] - timedelta(minutes=1))
