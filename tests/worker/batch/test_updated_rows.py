"""Rows are updated if they still are as they were read; every other one has a result that says why not."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from psycopg import errors

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import Connection, connect
from rowferry.db.entries import EntryQueries
from rowferry.errors import MigrationFault, ObjectNotFound, RowBusy, RowRefused, ServerFault
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.batch.row_update import RowChange, update_rows
from rowferry_worker.batch.rows import look_again, wait_for_turn
from rowferry_worker.batch.writes import Write, apply_in_halves
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


def test_a_table_that_cannot_be_updated_is_the_migrations_fault(table: EntryTable, connection: Connection) -> None:
    queries = queries_of(table, connection)
    connection.commit()
    table.execute("alter table public.avatars rename column path to text")
    with pytest.raises(MigrationFault):
        update_rows(connection, queries, [move(1), move(2)])
    connection.rollback()


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


@pytest.mark.parametrize("wait", [timedelta(0), timedelta(hours=1)])
def test_a_worker_that_gives_up_waits_for_no_turn(connection: Connection, wait: timedelta) -> None:
    with pytest.raises(BatchReleased):
        wait_for_turn(fake_context(connection, Limit(wait), gives_up=True), 7)


ROWS = list("abcdefgh")
Call = tuple[str, bool]
"""The rows of one try, and whether it waits for locks."""


class Database:
    """Writes rows of one letter, unless it is told to refuse them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.busy: Exception | None = None
        """What a try that waits for locks ends with."""
        self.refuses = ""
        """Letters of rows that it refuses."""
        self.refusal: Exception = RowRefused("refused")
        self.tries: list[Call] = []

    def write(self, rows: Sequence[str], wait_for_locks: bool) -> list[str]:
        self.tries.append(("".join(rows), wait_for_locks))
        if self.busy is not None and wait_for_locks:
            raise self.busy
        if set(rows) & set(self.refuses):
            raise self.refusal
        return [row.upper() for row in rows]

    def apply(self, rows: Sequence[str] = ROWS, write: Write[str, str] | None = None) -> str:
        """Return what became of each row: its capital letter, - for refused, ~ for busy."""
        return "".join(apply_in_halves(self.connection, rows, write or self.write, _mark))


def _mark(_row: str, error: RowRefused | RowBusy) -> str:
    return "~" if isinstance(error, RowBusy) else "-"


@pytest.fixture
def writing(connection: Connection) -> Database:
    return Database(connection)


@pytest.mark.parametrize("busy", [errors.LockNotAvailable("timeout"), errors.DeadlockDetected("deadlock")])
def test_after_a_wait_for_a_lock_or_a_deadlock_no_half_waits_again(writing: Database, busy: Exception) -> None:
    """Each wait takes `lock_timeout`: of a thousand rows, it would be ten times that."""
    writing.busy, writing.refuses = busy, "cg"
    assert writing.apply() == "AB-DEF-H"
    assert [rows for rows, waits in writing.tries if waits] == ["abcdefgh"]


@pytest.mark.parametrize("busy", [errors.LockNotAvailable("timeout"), errors.DeadlockDetected("deadlock")])
def test_rows_that_are_busy_without_a_wait_are_busy_and_none_is_refused(writing: Database, busy: Exception) -> None:
    writing.refuses, writing.refusal = "c", busy
    assert writing.apply() == "~" * len(ROWS)
    assert writing.tries == [("abcdefgh", True), ("abcdefgh", False)]
    assert writing.apply([]) == ""


def test_what_a_try_has_written_is_undone_before_its_halves_are_tried(writing: Database, table: EntryTable) -> None:
    def write(rows: Sequence[str], wait_for_locks: bool) -> list[str]:
        for row in rows:
            writing.connection.execute("insert into public.avatars values (%s, %s)", (ord(row), row))
        return writing.write(rows, wait_for_locks)

    writing.refuses = "h"
    assert writing.apply(write=write) == "ABCDEFG-"
    writing.connection.commit()
    assert {text for text in table.rows().values() if text and len(text) == 1} == set("abcdefg")
