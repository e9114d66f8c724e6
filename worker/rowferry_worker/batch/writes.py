"""Writes many rows at once under savepoints: a row that the database refuses is isolated by halving."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import psycopg
from psycopg import errors
from psycopg.sql import Composed

from rowferry.db.connection import Connection, fetch_tuples, summarise, translate
from rowferry.db.statements import own_queries
from rowferry.db.table_faults import explain_table_fault
from rowferry.db.written_tables import WrittenTable
from rowferry.errors import DatabaseUnavailable, MigrationFault, RowBusy, RowRefused

Row = TypeVar("Row")
Result = TypeVar("Result")

NAMES_AND_RIGHTS = "42"
"""The class of SQLSTATE of undefined names, wrong types and missing rights."""

VALUES = "22"
"""The class of invalid values."""

Write = Callable[[Sequence[Row], bool], list[Result]]
"""Writes rows in the order of their keys, and returns one result for each.

Any psycopg.Error, and RowRefused, counts against one of them. The second argument: whether to wait for locks; if not,
rows that other sessions have locked are left out, since waiting took `lock_timeout`.
"""

Upserted = bool | RowRefused | RowBusy
"""What became of a row: True: inserted or updated; False: it was so already; or why it was left as it was."""


@contextmanager
def savepoint(connection: Connection, name: Literal["work", "rows"], *, undo: bool = False) -> Generator[None]:
    """Undo the block's statements if it raises, or with `undo` in any case, and nothing before it.

    The caller holds the transaction. `work`: of a whole batch, begun by its claim; `rows`: of rows that are written at
    once, within that, with all constraints checked at each statement. Raises what the block raises; where the
    connection is lost, nothing is left to undo.
    """
    if name == "rows":
        connection.execute(own_queries()["begin_rows"], prepare=False)  # several statements in one
    try:
        yield
    except BaseException:
        undo = True
        raise
    finally:
        if undo:
            with suppress(psycopg.Error):
                connection.execute(own_queries()[f"undo_{name}"], prepare=False)


@contextmanager
def uncounted(connection: Connection) -> Generator[None]:
    """Execute statements of which psycopg takes no notice.

    It forgets what it has prepared at each ROLLBACK that it sees: what is undone might be a DDL.
    """
    threshold, connection.prepare_threshold = connection.prepare_threshold, None
    try:
        yield
    finally:
        connection.prepare_threshold = threshold


def read_and_undo(connection: Connection, query: bytes, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a query whose locks on tables are given back at once, in one round trip.

    The caller holds the transaction, which goes on where the query fails. Raises what the query raises.
    """
    queries = own_queries()
    try:
        with connection.pipeline():
            connection.execute(queries["begin_read"], prepare=False)
            connection.execute(queries["write_nothing"])
            rows = connection.execute(query, parameters)
            with uncounted(connection):
                connection.execute(queries["undo_read"])
                connection.execute(queries["end_read"])
    except psycopg.Error:
        with suppress(psycopg.Error), uncounted(connection):
            connection.execute(queries["undo_read"])
            connection.execute(queries["end_read"])
            with connection.transaction(force_rollback=True):
                pass  # psycopg forgets a statement that could not be prepared
        raise
    return fetch_tuples(rows)


def refuse_every_row(table: str, error: psycopg.Error) -> None:
    """Raise MigrationFault where PostgreSQL would refuse each row of the table."""
    if remedy := explain_table_fault(error):
        raise MigrationFault(f"PostgreSQL refuses to update {table}: {summarise(error)}; {remedy}.") from error


def apply_in_halves(
    connection: Connection,
    rows: Sequence[Row],
    write: Write[Row, Result],
    refuse: Callable[[Row, RowRefused | RowBusy], Result],
    check_table: Callable[[psycopg.Error], None] = lambda _error: None,
    *,
    wait_for_locks: bool = True,
) -> list[Result]:
    """Return one result a row: what `write` returns, or what `refuse` makes of a row that the database refuses.

    The caller holds the batch's transaction; each try runs under a savepoint of its own. Rows that violate a
    constraint, even a deferred one, or make a trigger fail are found by bisection. Where `lock_timeout` ends a try, it
    is repeated without waiting for locks; `wait_for_locks` false: it never waits. `check_table` may raise
    MigrationFault when an error is the table's fault.
    Raises DatabaseUnavailable when the connection is lost.
    """
    if not rows:
        return []
    return _Halving(connection, write, refuse, check_table).run(rows, wait_for_locks=wait_for_locks)


@dataclass(frozen=True, slots=True)
class _Halving(Generic[Row, Result]):
    """One call of `apply_in_halves`."""

    connection: Connection
    write: Write[Row, Result]
    refuse: Callable[[Row, RowRefused | RowBusy], Result]
    check_table: Callable[[psycopg.Error], None]

    def run(self, rows: Sequence[Row], *, wait_for_locks: bool) -> list[Result]:
        try:
            with savepoint(self.connection, "rows"):
                return self.write(rows, wait_for_locks)
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            if wait_for_locks:
                return self.run(rows, wait_for_locks=False)
            return [self.refuse(row, RowBusy(summarise(error))) for row in rows]
        except (psycopg.Error, RowRefused) as error:
            if isinstance(error, psycopg.Error):
                self.check_table(error)
            refusal = _to_refusal(error)
            if len(rows) == 1:
                return [self.refuse(rows[0], refusal)]
            middle = len(rows) // 2
            lower = self.run(rows[:middle], wait_for_locks=wait_for_locks)
            return lower + self.run(rows[middle:], wait_for_locks=wait_for_locks)


def _to_refusal(error: psycopg.Error | RowRefused) -> RowRefused:
    """Return the database's refusal as our error. Raises DatabaseUnavailable when the connection is lost."""
    if isinstance(error, RowRefused):
        return error
    known = translate(error)
    if isinstance(known, DatabaseUnavailable):
        raise known from error
    return RowRefused(summarise(error))


def upsert(
    connection: Connection, table: str, keys: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> list[Upserted]:
    """Insert rows, or update those that are there, in the order of their keys; return what became of each.

    `keys`: the columns of a unique index; each row has their values, then those of `columns`, as any Python value that
    psycopg adapts, or that JSON can say. Of rows with equal keys the last one counts. Rows are isolated as in
    `apply_in_halves`. Raises MigrationFault where the table cannot be written at all.
    """
    if not rows:
        return []
    writing = _Upsert(connection, WrittenTable.of(connection, table, keys, columns))
    last = {tuple(row[: len(keys)]): row for row in rows}
    given = [*last.values()]
    upserted = apply_in_halves(connection, given, writing.write, lambda _row, error: error, writing.check_table)
    by_key = dict(zip(last, upserted, strict=True))
    return [by_key[tuple(row[: len(keys)])] for row in rows]


@dataclass(frozen=True, slots=True)
class _Upsert:
    """The upsert of rows of one table."""

    connection: Connection
    table: WrittenTable

    def write(self, rows: Sequence[Sequence[Any]], wait_for_locks: bool) -> list[Upserted]:
        """Return what became of each row; `RowRefused` for rows that a trigger or a rule has kept as they were."""
        if not wait_for_locks and (busy := self._find_busy(rows)):
            free = [row for number, row in enumerate(rows, 1) if number not in busy]
            written = iter(self.write(free, True) if free else [])
            locked = RowBusy("another session holds a lock on the row")
            return [locked if number in busy else next(written) for number in range(1, len(rows) + 1)]
        texts = self.table.write_texts(self.connection, rows)
        written = self._find(self.table.compose_upsert(), texts)
        equal: set[int] = set()
        if len(written) < len(rows):
            equal = self._find(self.table.compose_find(equal=True), texts)
        refused = RowRefused("the database left the row as it was (a trigger or rule?)")
        numbers = range(1, len(rows) + 1)
        return [True if n in written else False if n in equal else refused for n in numbers]

    def check_table(self, error: psycopg.Error) -> None:
        """Raise MigrationFault where the table, not one of the rows, is at fault. A trigger that fails is its row's."""
        refuse_every_row(self.table.name, error)
        if not (error.sqlstate or "").startswith(NAMES_AND_RIGHTS) or error.diag.context:
            return
        table = self.table
        WrittenTable.of(self.connection, table.name, table.keys, table.columns)
        if isinstance(error, errors.InvalidColumnReference):
            words = f"Table {table.name} has no unique index of {', '.join(table.keys)} alone"
            raise MigrationFault(f"{words}; create one, or correct the plan.") from error

    def _find_busy(self, rows: Sequence[Sequence[Any]]) -> set[int]:
        """Return the numbers of rows that other sessions have locked; the others are locked now."""
        texts = self.table.write_texts(self.connection, rows)
        present = self._find(self.table.compose_find(), texts)
        return present - self._find(self.table.compose_find(lock=True), texts)

    def _find(self, query: Composed, texts: dict[str, Any]) -> set[int]:
        return {row["number"] for row in self.connection.execute(query, texts)}
