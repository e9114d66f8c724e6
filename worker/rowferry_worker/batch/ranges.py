"""What the queues over ranges of entries have in common: which entries a batch means, how its rows are rewritten."""

import time
from collections.abc import Sequence

import psycopg

from rowferry.batch import Entry, EntryResult
from rowferry.db.entries import EntrySql
from rowferry_worker.batch.context import Work
from rowferry_worker.batch.entries import Form, read_entries
from rowferry_worker.batch.rows import Move, update_rows
from rowferry_worker.batch.table_faults import refuse_unreadable
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.verbose import tell_rows


def find_entry_sql(work: Work) -> EntrySql:
    """Return the SQL over the table that the batch's entries are of."""
    return work.route.entries(work.connection, work.batch.payload["entries"])


def check_update(work: Work) -> None:
    """Raise MigrationFault where the rows of the batch could not be rewritten in the end."""
    work.route.check_update(work.connection, work.batch.payload["entries"])


def read_range(work: Work, form: Form) -> list[Entry]:
    """Return the entries of the batch's range that have this form, in the order of their ids.

    The lock that reading takes on the table goes with the savepoint: nobody's `alter table` waits for S3.
    Raises MigrationFault where the table is not what it was.
    """
    payload, entry_sql = work.batch.payload, find_entry_sql(work)
    try:
        with work.connection.transaction(force_rollback=True):
            entries = read_entries(work.connection, entry_sql, payload["first"], payload["last"], form)
    except psycopg.Error as error:
        refuse_unreadable(work.connection, entry_sql, error, payload["first"], payload["last"])
        raise
    if not entries:
        # Others may have settled them all; or the key is no text any more, whose form no comparison finds.
        entry_sql.check(work.connection, update=False)
    return entries


def rewrite_rows(work: Work, moves: Sequence[Move]) -> list[EntryResult]:
    """Point rows at their new keys, once their turn under `max_rows_per_second` has come; return a result for each.

    Raises Released when the worker gives the batch up meanwhile.
    """
    work.pause(work.route.reserve_rows(len(moves)))
    began = time.monotonic()
    with metrics.row_update_seconds.time():
        updated = update_rows(work.connection, find_entry_sql(work), moves)
    tell_rows(updated, time.monotonic() - began)
    return updated
