"""What a batch of each queue does: one ordered upsert into one table; items that the table refuses are left out."""

from collections.abc import Sequence
from functools import partial

from psycopg import sql

from book_import.specs import PREFIX
from book_import.tables import FIND_BUSY, WRITE, compose
from rowferry.batch import Entry, EntryResult, Outcome, Performed
from rowferry.errors import RowBusy
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.writes import apply_in_halves


def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Write the items of a batch into the queue's table; the queue after it gets them in the same transaction.

    The table adds the items up, which is right since a batch is committed once: with its verdict.
    """
    table = context.queue.spec.name.removeprefix(PREFIX)
    written = partial(write, context, table)
    return Performed(apply_in_halves(context.connection, entries, written, EntryResult.from_error))


def write(context: BatchContext, table: str, entries: Sequence[Entry], wait_for_locks: bool) -> list[EntryResult]:
    """Write items in the order of their rows. Without `wait_for_locks`, leave out those of rows that others write."""
    execute, busy = context.connection.execute, set[str]()
    if not wait_for_locks:
        names = {"names": [entry.values[0][table] for entry in entries]}
        busy = {row["name"] for row in execute(compose(FIND_BUSY, table), names)}
    items = [entry.values[0] for entry in entries if entry.values[0][table] not in busy]
    parameters = {"names": [item[table] for item in items], "published": [item["published"] for item in items]}
    execute(compose(WRITE, table, order=sql.SQL("order by b.name")), parameters)
    return [describe(entry, is_busy=entry.values[0][table] in busy) for entry in entries]


def describe(entry: Entry, *, is_busy: bool) -> EntryResult:
    """Return the result of an item: written, or to be tried again."""
    if is_busy:
        return EntryResult.from_error(entry, RowBusy("another session writes the row"))
    return EntryResult(entry, Outcome.MIGRATED)
