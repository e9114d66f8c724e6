"""Step 4 of 5: update the rows, guarded by the keys that were read; leave out only rows the database refuses."""

import logging
import time
from collections.abc import Mapping, Sequence

import psycopg
from msgspec import Struct
from psycopg import errors, sql

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import Connection, summarise, translate
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import own_queries
from rowferry.errors import DatabaseUnavailable, RowBusy, RowferryError, RowRefused
from rowferry_worker.batch.context import LOOK_UP_EVERY, BatchContext
from rowferry_worker.batch.entries import refuse_unwritable
from rowferry_worker.monitoring import metrics

_log = logging.getLogger(__name__)


class Move(Struct, frozen=True, gc=False):
    """An entry whose row may be updated to `new_key`: its object is there."""

    entry: Entry
    new_key: str
    outcome: Outcome
    """MIGRATED or KEPT: the entry's outcome once its row is updated."""
    size_bytes: int


def rewrite_rows(context: BatchContext, queries: EntryQueries, moves: Sequence[Move]) -> list[EntryResult]:
    """Update the rows to their new keys, within `max_rows_per_second`; return a result for each.

    Raises BatchReleased when the worker gives up meanwhile.
    """
    _wait_for_turn(context, len(moves))
    began = time.monotonic()
    with metrics.row_update_seconds.time():
        updated = update_rows(context.connection, queries, moves)
    if _log.isEnabledFor(logging.DEBUG):
        log_rows(updated, time.monotonic() - began)
    return updated


def _wait_for_turn(context: BatchContext, rows: int) -> None:
    """Wait for `max_rows_per_second`. Raises BatchReleased when the worker gives up meanwhile."""
    wait = context.migration.reserve_rows(rows)
    if wait:
        metrics.limit_wait_seconds.labels("max_rows_per_second").inc(wait.total_seconds())
    end, alive_at = time.monotonic() + wait.total_seconds(), time.monotonic()
    while (left := end - time.monotonic()) > 0 or context.give_up.is_set():
        context.give_up.wait(min(left, LOOK_UP_EVERY.total_seconds()))
        alive_at = context.keep_alive(alive_at)


def log_rows(results: Sequence[EntryResult], seconds: float) -> None:
    """Log each row for `--verbose`; `seconds` is what the update of all of them took."""
    for result in results:
        updated = result.outcome in {Outcome.MIGRATED, Outcome.KEPT}
        fields = {"id": result.entry.id, "old_key": result.entry.key, "outcome": str(result.outcome)}
        fields |= {"batch_ms": f"{seconds * 1000:.1f}"} if updated else {"error": result.error}
        _log.debug("row updated" if updated else "row not updated", extra=fields)


def update_rows(connection: Connection, queries: EntryQueries, moves: Sequence[Move]) -> list[EntryResult]:
    """Update each row to its new key if it still holds the old one; return one result a move.

    The caller holds the batch's transaction; each try runs under a savepoint of its own. Rows that violate a
    constraint or make a trigger fail are found by bisection; rows that other sessions hold locked are skipped after
    `lock_timeout`, as RowBusy. Raises DatabaseUnavailable when the connection is lost, MigrationFault when the table
    is at fault.
    """
    if not moves:
        return []
    connection.execute(own_queries()["check_constraints_now"])
    return _update(connection, queries, moves, wait_for_locks=True)


def _update(
    connection: Connection, queries: EntryQueries, moves: Sequence[Move], *, wait_for_locks: bool
) -> list[EntryResult]:
    try:
        with connection.transaction():
            updated = _execute_update(connection, queries, moves, wait_for_locks=wait_for_locks)
            skipped = [move for move in moves if move.entry.id not in updated]
            left = _observe(connection, queries, skipped, waited=wait_for_locks)
    except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
        if wait_for_locks:
            return _update(connection, queries, moves, wait_for_locks=False)
        return [_refused(move, RowBusy(summarise(error))) for move in moves]
    except (psycopg.Error, RowRefused) as error:
        if isinstance(error, psycopg.Error):
            refuse_unwritable(connection, queries, error)
        refusal = _to_refusal(error)
        if len(moves) == 1:
            return [_refused(moves[0], refusal)]
        middle = len(moves) // 2
        lower = _update(connection, queries, moves[:middle], wait_for_locks=wait_for_locks)
        return lower + _update(connection, queries, moves[middle:], wait_for_locks=wait_for_locks)
    done = [EntryResult(move.entry, move.outcome, move.size_bytes) for move in moves if move.entry.id in updated]
    return done + left


def _execute_update(
    connection: Connection, queries: EntryQueries, moves: Sequence[Move], *, wait_for_locks: bool
) -> set[str]:
    """Return the ids of the updated rows.

    Raises RowRefused when a row holds another key than it was given: that key may have no object.
    """
    query = queries.compose("update_rows", skip_locked=sql.SQL("" if wait_for_locks else "skip locked"))
    parameters = {
        "ids": [move.entry.id for move in moves],
        "old": [move.entry.key for move in moves],
        "new": [move.new_key for move in moves],
    }
    taken: dict[str, str] = {row["id"]: row["key"] for row in connection.execute(query, parameters)}
    for move in moves:
        if taken.get(move.entry.id, move.new_key) != move.new_key:
            raise RowRefused(f"the row took another key than it was given, {taken[move.entry.id]!r} (a trigger?)")
    return set(taken)


def _to_refusal(error: psycopg.Error | RowRefused) -> RowRefused:
    """Return the database's refusal as our error. Raises DatabaseUnavailable when the connection is lost."""
    if isinstance(error, RowRefused):
        return error
    known = translate(error)
    if isinstance(known, DatabaseUnavailable):
        raise known from error
    return RowRefused(summarise(error))


def _observe(
    connection: Connection, queries: EntryQueries, moves: Sequence[Move], *, waited: bool
) -> list[EntryResult]:
    """Return why the update skipped these rows, by the keys they hold now."""
    excused = find_excused(connection, queries, [move.entry for move in moves])
    error = (
        RowRefused("the update left the row as it was (a trigger or rule?)")
        if waited
        else RowBusy("another session holds a lock on the row")
    )
    return [excused.get(move.entry.id) or _refused(move, error) for move in moves]


def find_excused(connection: Connection, queries: EntryQueries, entries: Sequence[Entry]) -> dict[str, EntryResult]:
    """Return, by id, the results of entries whose rows were deleted, or hold another key than when they were read."""
    if not entries:
        return {}
    rows = connection.execute(queries.compose("observe_rows"), {"ids": [entry.id for entry in entries]})
    held = {row["id"]: row["key"] for row in rows}
    return {entry.id: _excuse(entry, held) for entry in entries if held.get(entry.id) != entry.key}


def _excuse(entry: Entry, held: Mapping[str, str | None]) -> EntryResult:
    if entry.id not in held:
        return EntryResult(entry, Outcome.DELETED, reason="row deleted", error="the row was deleted meanwhile")
    words = f"the row was rewritten meanwhile and now holds {held[entry.id]!r}"
    return EntryResult(entry, Outcome.CHANGED, reason="row rewritten", error=words)


def _refused(move: Move, error: RowferryError) -> EntryResult:
    return EntryResult.from_error(move.entry, error)
