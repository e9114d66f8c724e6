"""Step 4 of 5: update the rows, guarded by the keys that were read; leave out only rows the database refuses."""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress

import psycopg

from rowferry.batch import EntryResult, Outcome
from rowferry.db.connection import Connection
from rowferry.db.entries import EntryQueries
from rowferry.keys import Form
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.row_update import RowChange, RowUpdate, find_excused, update_rows
from rowferry_worker.batch.writes import savepoint
from rowferry_worker.monitoring import metrics

_log = logging.getLogger(__name__)


def rewrite_rows(
    context: BatchContext,
    queries: EntryQueries,
    changes: Sequence[RowChange],
    to: Form = "production",
    *,
    has_turn: bool = False,
    wait_for_locks: bool = True,
) -> list[EntryResult]:
    """Update the rows to their new keys and states, within `max_rows_per_second`; return a result for each.

    `has_turn`: that was waited for already. Rows that other sessions hold locked are RowBusy, which alone is retryable;
    at once, unless it is to wait for their locks. Raises BatchReleased when the worker gives up meanwhile.
    """
    if not has_turn:
        wait_for_turn(context, len(changes))
    began = time.monotonic()
    with metrics.row_update_seconds.labels(*context.work).time(), context.steps.step("update"):
        updated = update_rows(context.connection, queries, changes, to, wait_for_locks=wait_for_locks)
    if _log.isEnabledFor(logging.DEBUG):
        log_rows(updated, time.monotonic() - began)
    return updated


def wait_for_turn(context: BatchContext, rows: int) -> None:
    """Wait for `max_rows_per_second`. Raises BatchReleased when the worker gives up meanwhile."""
    wait = context.reserve_rows(rows)
    if wait:
        metrics.limit_wait_seconds.labels("max_rows_per_second").inc(wait.total_seconds())
    with context.steps.step("held"):
        context.wait(wait.total_seconds())


def log_rows(results: Sequence[EntryResult], seconds: float) -> None:
    """Log each row for `--verbose`; `seconds` is what the update of all of them took."""
    for result in results:
        updated = result.outcome in {Outcome.MIGRATED, Outcome.KEPT}
        fields = {"id": result.entry.id, "old_key": result.entry.key, "outcome": str(result.outcome)}
        fields |= {"batch_ms": f"{seconds * 1000:.1f}"} if updated else {"error": result.error}
        _log.debug("row updated" if updated else "row not updated", extra=fields)


def wait_until_free(connection: Connection, queries: EntryQueries, changes: Sequence[RowChange]) -> None:
    """Wait until no other session holds these rows locked, for `lock_timeout` at most; leave them unlocked."""
    with suppress(psycopg.Error), savepoint(connection, "rows", undo=True):
        RowUpdate(connection, queries, "production").lock(changes, skip_locked=False)


def look_again(
    context: BatchContext, queries: EntryQueries, results: Sequence[EntryResult], form: Form
) -> list[EntryResult]:
    """Return the results, but for rows that no longer hold the key: what became of its object is not theirs."""
    unsettled = [result.entry for result in results if not result.outcome.settled]
    excused = find_excused(context.connection, queries, unsettled, form)
    return [excused.get(result.entry.id, result) for result in results]
