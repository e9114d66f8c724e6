"""Rows written at once: who waits for locks, who is halved, in which order the results come."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from psycopg import errors

from rowferry.db.connection import Connection, connect
from rowferry.errors import RowBusy, RowRefused
from rowferry_worker.batch.writes import Write, apply_in_halves
from support.entries.entry_table import EntryTable

ROWS = list("abcdefgh")
Call = tuple[str, bool]
"""The rows of one try, and whether it waits for locks."""


@pytest.fixture
def connection(table: EntryTable) -> Iterator[Connection]:
    with closing(connect("test")) as connection:
        yield connection


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


def test_no_rows_are_no_try(writing: Database) -> None:
    assert writing.apply([]) == ""
    assert writing.tries == []


def test_rows_that_nothing_refuses_are_one_try(writing: Database) -> None:
    assert writing.apply() == "ABCDEFGH"
    assert writing.tries == [("abcdefgh", True)]


def test_a_refused_row_is_found_by_halving_and_the_others_keep_their_order(writing: Database) -> None:
    writing.refuses = "ce"
    assert writing.apply() == "AB-D-FGH"
    assert len(writing.tries) == 11
    assert {waits for _, waits in writing.tries} == {True}


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


def test_what_a_try_has_written_is_undone_before_its_halves_are_tried(writing: Database, table: EntryTable) -> None:
    def write(rows: Sequence[str], wait_for_locks: bool) -> list[str]:
        for row in rows:
            writing.connection.execute("insert into public.avatars values (%s, %s)", (ord(row), row))
        return writing.write(rows, wait_for_locks)

    writing.refuses = "h"
    assert writing.apply(write=write) == "ABCDEFG-"
    writing.connection.commit()
    assert set(table.rows().values()) == set("abcdefg")
