"""Writes the rows of a batch's entries, guarded by all that was read of them: their new keys, or values of columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from msgspec import Struct

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import Connection, fetch_tuples
from rowferry.db.description import ColumnDescription, describe_columns
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.db.statements import own_queries
from rowferry.db.written_tables import write_texts
from rowferry.errors import MigrationFault, RowBusy, RowferryError, RowRefused
from rowferry.keys import OTHER, Form, are_same
from rowferry_worker.batch.writes import NAMES_AND_RIGHTS, VALUES, apply_in_halves, refuse_every_row


class RowChange(Struct, frozen=True, gc=False):
    """An entry, and what its row is to hold."""

    entry: Entry
    values: Sequence[Any]
    """The new text alone, or values in the order of the columns."""
    outcome: Outcome = Outcome.MIGRATED
    """The entry's once its row is written."""
    size_bytes: int = 0


def update_rows(
    connection: Connection,
    queries: EntryQueries,
    changes: Sequence[RowChange],
    to: Form = "production",
    columns: Sequence[str] = (),
    *,
    wait_for_locks: bool = True,
) -> list[EntryResult]:
    """Write rows that still hold all that was read of them; return one result a change.

    `changes` are in the order of their ids. `to`: the form that the rows get with their new texts; of `columns`, which
    are written instead, the form that they have not. KEPT: the columns held these values. Rows that the database
    refuses are isolated as in `apply_in_halves`; rows that other sessions hold locked are skipped as RowBusy, after
    `lock_timeout` or at once. Raises DatabaseUnavailable when the connection is lost, MigrationFault when the table is
    at fault.
    """
    if not changes:
        return []
    if len(queries.entries.ids) > 1:
        connection.execute(own_queries()["prefer_indexes"])
    update = RowUpdate(connection, queries, to, find_columns(connection, queries.entries.table, columns))
    return apply_in_halves(
        connection, changes, update.write, _refuse, update.check_table, wait_for_locks=wait_for_locks
    )


def find_columns(connection: Connection, table: str, columns: Sequence[str]) -> Sequence[ColumnDescription]:
    """Return what the catalogue says of columns of a table of entries. Raises MigrationFault where one is not there."""
    if not columns:
        return ()
    found = describe_columns(connection, table, columns) or {}
    missing = next((column for column in columns if column not in found), None)
    if missing is not None:
        raise MigrationFault(f"Table {table} has no column {missing}; create it, or correct the plan.")
    closed = next((column for column in columns if not found[column].rights >= {"select", "update"}), None)
    if closed is not None:
        remedy = "grant it select and update, as `rowferry init --grants` does"
        raise MigrationFault(f"The role of the workers may not write {table}.{closed}; {remedy}.")
    return [found[column] for column in columns]


def _refuse(change: RowChange, error: RowferryError) -> EntryResult:
    return EntryResult.from_error(change.entry, error)


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """The update of rows of one table: of their texts to one form, or of columns."""

    connection: Connection
    queries: EntryQueries
    to: Form
    columns: Sequence[ColumnDescription] = ()

    def write(self, changes: Sequence[RowChange], wait_for_locks: bool) -> list[EntryResult]:
        """Update the rows, and return one result a change, in their order."""
        locked = self.lock(changes, skip_locked=not wait_for_locks)
        held = [change for change in changes if locked.get(change.entry.id) is False]
        written = self._execute(held)
        if len(written) == len(changes):  # as nearly always
            return [EntryResult(change.entry, change.outcome, change.size_bytes) for change in changes]
        done = written | {entry_id for entry_id, is_equal in locked.items() if is_equal}
        left = [change.entry for change in changes if change.entry.id not in done]
        excused = find_excused(self.connection, self.queries, left, OTHER[self.to])
        refused = RowRefused("the update left the row as it was (a trigger or rule?)")
        busy = RowBusy("another session holds a lock on the row")
        results: list[EntryResult] = []
        for change in changes:
            entry = change.entry
            if entry.id in written:
                results.append(EntryResult(entry, change.outcome, change.size_bytes))
            elif entry.id in done:
                results.append(EntryResult(entry, Outcome.KEPT))
            else:
                error = refused if wait_for_locks or entry.id in locked else busy
                results.append(excused.get(entry.id) or _refuse(change, error))
        return results

    def lock(self, changes: Sequence[RowChange], *, skip_locked: bool) -> dict[str, bool]:
        """Lock the rows that still hold all that was read of them; return by id whether they hold the values."""
        query = self.queries.compose_lock(self.to, self._types, skip_locked=skip_locked)
        return dict(fetch_tuples(self.connection.execute(query, self._bind(changes))))

    def check_table(self, error: psycopg.Error) -> None:
        """Raise MigrationFault where the table is at fault. A trigger that fails counts as a fault of its row.

        The savepoint of that statement has been rolled back.
        """
        table, state = self.queries.entries.table, error.sqlstate or ""
        refuse_every_row(table, error)
        if state.startswith((NAMES_AND_RIGHTS, VALUES)):
            self.queries.check(self.connection, update=not self.columns)
            find_columns(self.connection, table, [column.name for column in self.columns])

    @property
    def _types(self) -> tuple[tuple[str, str], ...]:
        return tuple((column.name, column.type) for column in self.columns)

    def _bind(self, changes: Sequence[RowChange]) -> dict[str, Any]:
        """Return what was read of the rows, and what they are to hold, as parameters."""
        values = [change.values for change in changes]
        texts = (
            write_texts(self.connection, self.columns, values) if self.columns else {"text_0": [t for (t,) in values]}
        )
        return self.queries.bind([change.entry for change in changes], **texts)

    def _execute(self, changes: Sequence[RowChange]) -> set[str]:
        """Update locked rows, and return the ids of those that were.

        Raises RowRefused when a row holds another text than it was given: that may have no object.
        """
        if not changes:
            return set()
        query = self.queries.compose_update(self.to, self._types)
        rows = fetch_tuples(self.connection.execute(query, self._bind(changes)))
        if not self.columns:
            given = {change.entry.id: change.values[0] for change in changes}
            for entry_id, key, is_written in rows:
                if key != (new := given[entry_id]) and not are_same(key, new, self.queries.entries):
                    raise RowRefused(f"the row took another key than it was given, {key!r} (a trigger?)")
                if not is_written:
                    raise RowRefused(f"the row does not have the {self.to} form after the update (a trigger?)")
        return {entry_id for entry_id, _, _ in rows}


def find_excused(
    connection: Connection, queries: EntryQueries, entries: Sequence[Entry], form: Form
) -> dict[str, EntryResult]:
    """Return, by id, the results of entries whose rows were deleted, or are no longer as they were read.

    `entries` are in the order of their ids; `form`: theirs as they were read.
    """
    if not entries:
        return {}
    query = queries.compose("observe_rows", origin=queries.has_form(form))
    rows = connection.execute(query, queries.bind(entries)).fetchall()
    held = {entry.id: (entry, row["is_entry"]) for entry, row in zip(to_entries(rows), rows, strict=True)}
    excused = ((entry.id, _excuse(entry, *held.get(entry.id, (None, False)))) for entry in entries)
    return {entry_id: result for entry_id, result in excused if result is not None}


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
