"""Step 4 of 5: update the rows, guarded by the keys that were read; leave out only rows the database refuses."""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from msgspec import Struct

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import Connection
from rowferry.db.entries import EntryQueries, to_entries, write_objects
from rowferry.db.statements import own_queries
from rowferry.errors import RowBusy, RowferryError, RowRefused
from rowferry.keys import Form, are_same
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.sources.table import refuse_unwritable
from rowferry_worker.batch.writes import apply_in_halves, savepoint
from rowferry_worker.monitoring import metrics

_log = logging.getLogger(__name__)


class Move(Struct, frozen=True, gc=False):
    """An entry whose row may be updated to `new_key`: its object is there."""

    entry: Entry
    new_key: str
    outcome: Outcome
    """MIGRATED or KEPT: the entry's outcome once its row is updated."""
    size_bytes: int


def rewrite_rows(
    context: BatchContext,
    queries: EntryQueries,
    moves: Sequence[Move],
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
        wait_for_turn(context, len(moves))
    began = time.monotonic()
    with metrics.row_update_seconds.labels(*context.work).time(), context.steps.step("update"):
        updated = update_rows(context.connection, queries, moves, to, wait_for_locks=wait_for_locks)
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


class _Waited(Exception):
    """The locks were there to be had."""


def wait_until_free(connection: Connection, queries: EntryQueries, moves: Sequence[Move]) -> None:
    """Wait until no other session holds these rows locked, for `lock_timeout` at most; leave them unlocked."""
    locking = _Update(connection, queries, "production")
    with suppress(_Waited, psycopg.Error), savepoint(connection, "rows"):
        locking.lock(moves, skip_locked=False)
        raise _Waited


def update_rows(
    connection: Connection,
    queries: EntryQueries,
    moves: Sequence[Move],
    to: Form = "production",
    *,
    wait_for_locks: bool = True,
) -> list[EntryResult]:
    """Update each row to its new key if it still holds all that was read of it; return one result a move.

    The moves are in the order of their ids. Rows that the database refuses are isolated as in `apply_in_halves`; rows
    that other sessions hold locked are skipped as RowBusy, after `lock_timeout` or at once. Raises DatabaseUnavailable
    when the connection is lost, MigrationFault when the table is at fault.
    """
    if not moves:
        return []
    if len(queries.entries.ids) > 1:
        connection.execute(own_queries()["prefer_indexes"])
    update = _Update(connection, queries, to)
    return apply_in_halves(connection, moves, update.write, _refused, update.check_table, wait_for_locks=wait_for_locks)


@dataclass(frozen=True, slots=True)
class _Update:
    """The update of rows of one table to one form."""

    connection: Connection
    queries: EntryQueries
    to: Form

    def write(self, moves: Sequence[Move], wait_for_locks: bool) -> list[EntryResult]:
        """Update the rows, and return one result a move."""
        locked = self.lock(moves, skip_locked=not wait_for_locks)
        updated = self._execute(locked)
        skipped = [move for move in moves if move.entry.id not in updated]
        left = self._observe(skipped, moves if wait_for_locks else locked)
        return [
            EntryResult(move.entry, move.outcome, move.size_bytes) for move in moves if move.entry.id in updated
        ] + left

    def check_table(self, error: psycopg.Error) -> None:
        """Raise MigrationFault where the table is at fault."""
        refuse_unwritable(self.connection, self.queries, error)

    def _execute(self, moves: Sequence[Move]) -> set[str]:
        """Update locked rows, and return the ids of those that were.

        Raises RowRefused when a row holds something else than it was given: that may have no object.
        """
        if not moves:
            return set()
        query = self.queries.compose_update(self.to)
        taken: dict[str, Any] = {
            row["id"]: row for row in self.connection.execute(query, self._write(moves)).fetchall()
        }
        for move in moves:
            if row := taken.get(move.entry.id):
                self._refuse_another_text(move, row)
        return set(taken)

    def lock(self, moves: Sequence[Move], *, skip_locked: bool) -> list[Move]:
        """Lock the rows that still hold all that was read of them, and return their moves."""
        query = self.queries.compose_lock(self.to, skip_locked=skip_locked)
        locked: set[str] = {row["id"] for row in self.connection.execute(query, self._write(moves)).fetchall()}
        return [move for move in moves if move.entry.id in locked]

    def _write(self, moves: Sequence[Move]) -> dict[str, Any]:
        """Return what was read of the rows, and what they are to hold, as parameters."""
        return self.queries.parameters(
            **bound_ids([move.entry for move in moves]),
            old=[move.entry.key for move in moves],
            new=[move.new_key for move in moves],
            objects=[write_objects(move.entry) for move in moves] if self.queries.entries.computes_objects else [],
        )

    def _refuse_another_text(self, move: Move, row: dict[str, Any]) -> None:
        if not are_same(row["key"], move.new_key, self.queries.entries):
            raise RowRefused(f"the row took another key than it was given, {row['key']!r} (a trigger?)")
        if not row["has_moved"]:
            raise RowRefused(f"the row does not have the {self.to} form after the update (a trigger?)")

    def _observe(self, moves: Sequence[Move], locked: Sequence[Move]) -> list[EntryResult]:
        """Return why the update skipped these rows, by what they hold now; `locked`: it did not wait for a lock."""
        origin: Form = "legacy" if self.to == "production" else "production"
        excused = find_excused(self.connection, self.queries, [move.entry for move in moves], origin)
        free = {move.entry.id for move in locked}
        refused = RowRefused("the update left the row as it was (a trigger or rule?)")
        busy = RowBusy("another session holds a lock on the row")
        return [
            excused.get(move.entry.id) or _refused(move, refused if move.entry.id in free else busy) for move in moves
        ]


def find_excused(
    connection: Connection, queries: EntryQueries, entries: Sequence[Entry], form: Form
) -> dict[str, EntryResult]:
    """Return, by id, the results of entries whose rows were deleted, or are no longer as they were read.

    `entries` are in the order of their ids; `form`: theirs as they were read.
    """
    if not entries:
        return {}
    query = queries.compose("observe_rows", origin=queries.has_form(form))
    rows = connection.execute(query, queries.parameters(**bound_ids(entries))).fetchall()
    held = {entry.id: (entry, row["is_entry"]) for entry, row in zip(to_entries(rows), rows, strict=True)}
    excused = ((entry.id, _excuse(entry, *held.get(entry.id, (None, False)))) for entry in entries)
    return {entry_id: result for entry_id, result in excused if result is not None}


def bound_ids(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the ids of entries, and the first and the last of them, as parameters."""
    return {"ids": [entry.id for entry in entries], "first": entries[0].id, "last": entries[-1].id}


def look_again(
    context: BatchContext, queries: EntryQueries, results: Sequence[EntryResult], form: Form
) -> list[EntryResult]:
    """Return the results, but for rows that no longer hold the key: what became of its object is not theirs."""
    unsettled = [result.entry for result in results if not result.outcome.settled]
    excused = find_excused(context.connection, queries, unsettled, form)
    return [excused.get(result.entry.id, result) for result in results]


def _excuse(entry: Entry, now: Entry | None, is_entry: bool) -> EntryResult | None:
    if now is None:
        return EntryResult(entry, Outcome.DELETED, reason="row deleted", error="the row was deleted meanwhile")
    if now.key != entry.key:
        words = f"the row was rewritten meanwhile and now holds {now.key!r}"
    elif (now.objects, now.optional) != (entry.objects, entry.optional):
        words = "the row was rewritten meanwhile and has other objects now"
    elif not is_entry:
        words = "the row was rewritten meanwhile and is no longer one to work on"
    else:
        return None
    return EntryResult(entry, Outcome.CHANGED, reason="row rewritten", error=words)


def _refused(move: Move, error: RowferryError) -> EntryResult:
    return EntryResult.from_error(move.entry, error)
