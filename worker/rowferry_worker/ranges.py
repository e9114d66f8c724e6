"""What the queues over ranges of entries have in common: which entries a batch means, how its rows are rewritten."""

import time
from collections.abc import Sequence

from rowferry.batch import Entry, EntryResult
from rowferry.entry_sql import EntrySql
from rowferry_worker import metrics
from rowferry_worker.entries import Form, read_entries
from rowferry_worker.rows import Move, update_rows
from rowferry_worker.verbose import tell_rows
from rowferry_worker.work import Work


def find_entry_sql(work: Work) -> EntrySql:
    """Return the SQL over the table that the batch's entries are of."""
    return work.route.entries(work.connection, work.batch.payload["entries"])


def read_range(work: Work, form: Form) -> list[Entry]:
    """Return the entries of the batch's range that have this form, in the order of their ids.

    The lock that reading takes on the table goes with the savepoint: nobody's `alter table` waits for S3.
    """
    payload, entry_sql = work.batch.payload, find_entry_sql(work)
    with work.connection.transaction(force_rollback=True):
        return read_entries(work.connection, entry_sql, payload["first"], payload["last"], form)


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
