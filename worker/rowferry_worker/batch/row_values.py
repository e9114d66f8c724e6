"""Writes values into the rows of a batch's entries, guarded by the keys that were read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from msgspec import Struct

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import Connection
from rowferry.db.entries import EntryQueries, write_objects
from rowferry.db.statements import own_queries
from rowferry.db.written_tables import WrittenColumn, describe_columns, write_texts
from rowferry.errors import MigrationFault, RowBusy, RowRefused
from rowferry.keys import Form
from rowferry_worker.batch.rows import bound_ids, find_excused
from rowferry_worker.batch.writes import NAMES_AND_RIGHTS, apply_in_halves, refuse_every_row


class NewValues(Struct, frozen=True, gc=False):
    """An entry, and what columns of its row are to hold."""

    entry: Entry
    values: Sequence[Any]
    """In the order of the columns."""
    size_bytes: int = 0


def update_values(
    connection: Connection, queries: EntryQueries, form: Form, columns: Sequence[str], changes: Sequence[NewValues]
) -> list[EntryResult]:
    """Write values into rows that still hold all that was read of them; return one result a change.

    `changes` are in the order of their ids; `form`: that of the rows. MIGRATED: written. KEPT: the row held these
    values. Rows are isolated as in `apply_in_halves`. Raises MigrationFault where the columns cannot be written.
    """
    if not changes:
        return []
    if len(queries.entries.ids) > 1:
        connection.execute(own_queries()["prefer_indexes"])
    update = _Update(connection, queries, form, find_columns(connection, queries.entries.table, columns))
    return apply_in_halves(connection, changes, update.write, _refuse, update.check_table)


def find_columns(connection: Connection, table: str, columns: Sequence[str]) -> list[WrittenColumn]:
    """Return what the catalogue says of columns of a table of entries. Raises MigrationFault where one is not there."""
    found: Mapping[str, WrittenColumn] = describe_columns(connection, table, columns, updated=columns)
    missing = next((column for column in columns if column not in found), None)
    if missing is not None:
        raise MigrationFault(f"Table {table} has no column {missing}; create it, or correct the plan.")
    closed = next((column for column in columns if not found[column].may_write), None)
    if closed is not None:
        remedy = "grant it select and update, as `rowferry init --grants` does"
        raise MigrationFault(f"The role of the workers may not write {table}.{closed}; {remedy}.")
    return [found[column] for column in columns]


def _refuse(change: NewValues, error: RowRefused | RowBusy) -> EntryResult:
    return EntryResult.from_error(change.entry, error)


@dataclass(frozen=True, slots=True)
class _Update:
    """The update of rows of one table."""

    connection: Connection
    queries: EntryQueries
    form: Form
    columns: Sequence[WrittenColumn]

    def write(self, changes: Sequence[NewValues], wait_for_locks: bool) -> list[EntryResult]:
        """Lock the rows that still are as they were read, in the order of their ids, and update them."""
        lock = self.queries.compose_lock(
            "legacy" if self.form == "production" else "production", skip_locked=not wait_for_locks
        )
        by_id = {change.entry.id: change for change in changes}
        locked = [row["id"] for row in self.connection.execute(lock, self._write_parameters(changes))]
        held = [by_id[entry_id] for entry_id in locked]
        updated = self._execute("update_values", held) if held else set[str]()
        equal = [change for change in held if change.entry.id not in updated]
        refused = self._execute("find_different", equal) if equal else set[str]()
        left = [change.entry for change in changes if change.entry.id not in {*locked}]
        excused = find_excused(self.connection, self.queries, left, self.form)
        kept = {*locked} - updated - refused
        return [self._judge(change, updated, kept, refused, excused) for change in changes]

    def check_table(self, error: psycopg.Error) -> None:
        """Raise MigrationFault where the table is at fault."""
        refuse_every_row(self.queries.entries.table, error)
        if (error.sqlstate or "").startswith(NAMES_AND_RIGHTS):
            self.queries.check(self.connection, update=False)
            find_columns(self.connection, self.queries.entries.table, [column.name for column in self.columns])

    def _execute(self, name: Literal["update_values", "find_different"], held: Sequence[NewValues]) -> set[str]:
        """Return the ids of the rows that were updated, or that hold something else all the same."""
        query = self.queries.compose_values(name, self.form, {column.name: column.type for column in self.columns})
        texts = write_texts(self.connection, self.columns, [change.values for change in held])
        return {row["id"] for row in self.connection.execute(query, {**self._write_parameters(held), **texts})}

    def _write_parameters(self, changes: Sequence[NewValues]) -> dict[str, Any]:
        """Return what was read of the rows."""
        entries = [change.entry for change in changes]
        objects = [write_objects(entry) for entry in entries] if self.queries.entries.computes_objects else []
        return self.queries.parameters(**bound_ids(entries), old=[entry.key for entry in entries], objects=objects)

    def _judge(
        self,
        change: NewValues,
        updated: set[str],
        kept: set[str],
        refused: set[str],
        excused: Mapping[str, EntryResult],
    ) -> EntryResult:
        entry = change.entry
        if entry.id in updated:
            return EntryResult(entry, Outcome.MIGRATED, change.size_bytes)
        if entry.id in kept:
            return EntryResult(entry, Outcome.KEPT)
        if entry.id in refused:
            return _refuse(change, RowRefused("the update left the row as it was (a trigger or rule?)"))
        return excused.get(entry.id) or _refuse(change, RowBusy("another session holds a lock on the row"))
