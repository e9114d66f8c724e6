"""Step 2 of 5: read the entries of a batch that (still) have the form its queue works on."""

from typing import Literal

import psycopg

from rowferry.batch import Entry
from rowferry.db.connection import Connection
from rowferry.db.entries import EntrySql
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.table_faults import refuse_unreadable

Form = Literal["legacy", "production"]


def find_entry_sql(context: BatchContext) -> EntrySql:
    """Return the SQL over the table of the batch's entries."""
    return context.route.entries(context.connection, context.batch.payload["entries"])


def check_update(context: BatchContext) -> None:
    """Raise MigrationFault when this role may not update the batch's rows."""
    context.route.check_update(context.connection, context.batch.payload["entries"])


def read_range(context: BatchContext, form: Form) -> list[Entry]:
    """Return the entries of the batch's range that have this form, in the order of their ids.

    The savepoint releases the table lock of this read, so that no `alter table` waits for S3. Raises MigrationFault
    when the table has changed.
    """
    payload, entry_sql = context.batch.payload, find_entry_sql(context)
    try:
        with context.connection.transaction(force_rollback=True):
            entries = read_entries(context.connection, entry_sql, payload["first"], payload["last"], form)
    except psycopg.Error as error:
        refuse_unreadable(context.connection, entry_sql, error, payload["first"], payload["last"])
        raise
    if not entries:
        # Either all are settled, or the key column is no longer text, whose form no comparison finds.
        entry_sql.check(context.connection, update=False)
    return entries


def read_entries(
    connection: Connection, entry_sql: EntrySql, first: str, last: str, form: Form = "legacy"
) -> list[Entry]:
    """Return the entries of one form with ids from `first` to `last`, both included, in the order of their ids.

    Rows that an earlier attempt or the application has rewritten no longer have the form: a batch may run any number
    of times.
    """
    query = entry_sql.compose("read_entries", wanted=entry_sql.has_form(form))
    rows = connection.execute(query, entry_sql.parameters(first=first, last=last))
    return [Entry(row["id"], row["key"]) for row in rows]
