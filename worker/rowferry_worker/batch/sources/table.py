"""Step 2 of 5, of a table: read the entries of a batch's range that (still) have the form its queue works on."""

from collections.abc import Sequence

import psycopg

from rowferry.batch import Entry
from rowferry.db.connection import Connection, summarise
from rowferry.db.entries import EntryQueries, make_entries
from rowferry.errors import MigrationFault
from rowferry.keys import Form
from rowferry_worker.batch.context import BatchContext, find_meant
from rowferry_worker.batch.writes import NAMES_AND_RIGHTS, VALUES, read_and_undo

_WRITES = "25006"
"""What a read that would write ends with (read_only_sql_transaction)."""


def find_queries(context: BatchContext, *, update: bool = False) -> EntryQueries:
    """Return the SQL over the table of the batch's entries. Raises MigrationFault if they cannot be read or updated."""
    return context.migration.entries(context.connection, context.batch.payload["entries"], update=update)


def read_rows(context: BatchContext) -> list[Entry]:
    """Return the entries of the batch's range that still need the work, in the order of their ids.

    The range: ids from `first` to `last` of the payload, both included, of the table whose label is `entries`.
    """
    queue, payload, settings = context.queue.spec, context.batch.payload, context.settings
    queries = find_queries(context, update=queue.gives_form is not None)
    context.migration.refuse_condition(context.connection, queries, queue.where(settings))
    columns = queue.columns(settings, queries.entries)
    entries = read_range(context, queue.find_form(settings), queries, columns, queue.where(settings))
    meant = find_meant(payload)
    return entries if meant is None else [entry for entry in entries if entry.id in meant]


def read_range(
    context: BatchContext,
    form: Form,
    queries: EntryQueries,
    columns: Sequence[str] = (),
    where: str | None = None,
) -> list[Entry]:
    """Return the entries of the batch's range that have this form, in the order of their ids.

    `columns`: of the row, which are read as text; `where`: a condition that its rows must meet besides. Raises
    MigrationFault when the table has changed.
    """
    payload = context.batch.payload
    try:
        bounds = payload["first"], payload["last"]
        entries = read_entries(
            context.connection, queries, *bounds, form, since=payload.get("since"), columns=columns, where=where
        )
    except psycopg.Error as error:
        refuse_unreadable(context.connection, queries, error, payload["first"], payload["last"])
        raise
    if not entries:
        # Either all are settled, or the key column is no longer text, whose form no comparison finds.
        queries.check(context.connection, update=False)
    return entries


def read_entries(
    connection: Connection,
    queries: EntryQueries,
    first: str,
    last: str,
    form: Form = "legacy",
    *,
    since: str | None = None,
    columns: Sequence[str] = (),
    where: str | None = None,
) -> list[Entry]:
    """Return the entries of one form with ids from `first` to `last`, both included, in the order of their ids.

    `since`: only those that have changed then or later, by the plan's `changed`. Rows that an earlier attempt or the
    application has rewritten no longer have the form: a batch may run any number of times. The lock on the table is
    given back at once, so that no `alter table` waits for S3.
    """
    query = queries.compose_read(form, tuple(columns), where, has_since=since is not None)
    return make_entries(read_and_undo(connection, query, queries.parameters(first=first, last=last, since=since)))


def refuse_unreadable(
    connection: Connection, queries: EntryQueries, error: psycopg.Error, first: str, last: str
) -> None:
    """Raise MigrationFault if the table, not one of its rows, made the read of a range fail.

    The savepoint of that statement has been rolled back.
    """
    state = error.sqlstate or ""
    if state == _WRITES:
        raise MigrationFault(f"The SQL of {queries.entries.label} would write: {summarise(error)}; correct the plan.")
    if state.startswith((NAMES_AND_RIGHTS, VALUES)):
        queries.check(connection, update=False)
    if state.startswith(NAMES_AND_RIGHTS):
        reason = f"the entries of {queries.entries.label} cannot be read: {summarise(error)}"
        raise MigrationFault(f"{reason}; correct the table or the plan") from error
    if state.startswith(VALUES) and not _are_ids(connection, queries, first, last):
        reason = f"the ids of the waiting batches are no longer of type {queries.ids.type}"
        raise MigrationFault(f"{reason} ({queries.entries.label}): change the column back, or delete those batches")


def _are_ids(connection: Connection, queries: EntryQueries, first: str, last: str) -> bool:
    try:
        with connection.transaction():
            connection.execute(queries.compose("cast_bounds"), {"first": first, "last": last})
    except psycopg.DataError:
        return False
    return True
