"""Rows are updated if they still are as they were read; every other one has a result that says why not."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import Connection, connect
from rowferry.db.entries import EntryQueries
from rowferry.errors import MigrationFault, ObjectNotFound, ServerFault
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.batch.row_update import RowChange, update_rows
from rowferry_worker.batch.rows import look_again, rewrite_rows, wait_for_turn
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.steps import StepClock
from support.entries.entry_table import FROM, TO, EntryTable


@pytest.fixture
def connection(table: EntryTable) -> Iterator[Connection]:
    table.add_legacy(range(5))
    with closing(connect("test")) as connection:
        yield connection


def entry(number: int) -> Entry:
    return Entry(str(number), f"{FROM}u{number}/me.png")


def move(number: int, outcome: Outcome = Outcome.MIGRATED) -> RowChange:
    return RowChange(entry(number), (f"{TO}u{number}/me.png",), outcome, number)


def queries_of(table: EntryTable, connection: Connection) -> EntryQueries:
    return EntryQueries.of(connection, table.read_plan().entries[0])


def forms(table: EntryTable) -> str:
    """Return the first letter of each row's form, by id; _ for a null."""
    return "".join((key or "_")[0] for key in table.rows().values())


def test_each_row_has_its_own_outcome_and_bytes(table: EntryTable, connection: Connection) -> None:
    found = update_rows(connection, queries_of(table, connection), [move(1), move(2), move(3, Outcome.KEPT)])
    connection.commit()
    assert [(each.entry, each.outcome, each.size_bytes) for each in found] == [
        (entry(1), Outcome.MIGRATED, 1),
        (entry(2), Outcome.MIGRATED, 2),
        (entry(3), Outcome.KEPT, 3),
    ]
    assert forms(table) == "iaaai"


def test_a_table_that_cannot_be_updated_is_the_migrations_fault(table: EntryTable, connection: Connection) -> None:
    queries = queries_of(table, connection)
    connection.commit()
    table.execute("alter table public.avatars rename column path to text")
    with pytest.raises(MigrationFault):
        update_rows(connection, queries, [move(1), move(2)])
    connection.rollback()


# Entries that are not updated


def test_a_failure_is_forgotten_where_the_row_has_changed_since(table: EntryTable, connection: Connection) -> None:
    nothing, broken = ObjectNotFound("NoSuchKey", "gone"), ServerFault("InternalError", "broken")
    given = [
        EntryResult(entry(0), Outcome.KEPT),
        EntryResult.from_error(entry(1), nothing, Outcome.MISSING),
        EntryResult.from_error(entry(2), broken),
        EntryResult.from_error(entry(3), broken),
    ]
    table.execute("update public.avatars set path = 'image/other' where id in (0, 1)")
    table.execute("delete from public.avatars where id = 3")
    found = look_again(fake_context(connection), queries_of(table, connection), given, "legacy")
    assert [each.outcome for each in found] == ["kept", "changed", "failed", "deleted"]
    assert (found[0], found[2]) == (given[0], given[2])


# The rate of rows


class Limit:
    """A ledger that says how long to wait for the turn of rows."""

    def __init__(self, wait: timedelta) -> None:
        self.wait = wait
        self.reserved: list[int] = []

    def call(self, function: str, migration_id: int, rows: int, per_second: float) -> list[dict[str, timedelta]]:
        assert (function, migration_id, per_second) == ("take_row_turn", 1, 40.0)
        self.reserved.append(rows)
        return [{function: self.wait}]


def fake_context(connection: Any, limit: Limit | None = None, *, gives_up: bool = False) -> BatchContext:
    nothing: Any = None
    queue: Any = SimpleNamespace(spec=SimpleNamespace(name="note"))
    migration: Any = SimpleNamespace(
        name="avatars", plan=SimpleNamespace(database=SimpleNamespace(max_rows_per_second=40.0 if limit else None))
    )
    ledger: Any = limit
    give_up = Event()
    if gives_up:
        give_up.set()
    batch: Any = SimpleNamespace(queue_name="note", migration_id=1)
    steps = StepClock()
    return BatchContext(queue, batch, nothing, connection, migration, nothing, give_up, steps=steps, ledger=ledger)


def test_rows_take_their_turn_before_they_are_updated(table: EntryTable, connection: Connection) -> None:
    limit = Limit(timedelta(0))
    found = rewrite_rows(fake_context(connection, limit), queries_of(table, connection), [move(1), move(2)])
    connection.commit()
    assert (limit.reserved, len(found), forms(table)) == ([2], 2, "iaaii")


@pytest.mark.parametrize("wait", [timedelta(0), timedelta(hours=1)])
def test_a_worker_that_gives_up_waits_for_no_turn(connection: Connection, wait: timedelta) -> None:
    with pytest.raises(BatchReleased):
        wait_for_turn(fake_context(connection, Limit(wait), gives_up=True), 7)


def test_the_wait_for_a_turn_is_counted(connection: Connection) -> None:
    counter = metrics.limit_wait_seconds.labels("max_rows_per_second")
    before = counter._value.get()
    with pytest.raises(BatchReleased):
        wait_for_turn(fake_context(connection, Limit(timedelta(hours=1)), gives_up=True), 7)
    assert counter._value.get() - before == pytest.approx(3600)
