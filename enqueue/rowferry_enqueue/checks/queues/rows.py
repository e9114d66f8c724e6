"""Checks that a queue can read the columns that it asks for, and use its condition over the row; reads no row."""

from collections.abc import Iterator

import psycopg
from psycopg import sql

from rowferry.db.connection import Connection, summarise, translate
from rowferry.db.entries import EntryQueries
from rowferry.errors import DatabaseUnavailable
from rowferry.plan import QueueSettings
from rowferry.queue_spec import QueueSpec
from rowferry_enqueue.checks.finding import Finding, problem


def check_queue_rows(
    connection: Connection, queries: EntryQueries, spec: QueueSpec, settings: QueueSettings, *, as_worker: bool = True
) -> Iterator[Finding]:
    """Yield what is wrong with the columns and the condition of a queue for one table.

    `as_worker`: this role must be allowed to read the columns, too; an enqueuer only needs them to be there.
    Raises DatabaseUnavailable when the connection is lost.
    """
    label = queries.entries.label
    for column in spec.columns(settings, queries.entries):
        if fault := _find_fault(connection, queries, queries.read_columns([column]), with_rights=as_worker):
            what = f"[queue.{spec.name}] reads the column {column} of {label}, which cannot be read: {fault}"
            yield problem(what, "name a column of that table, and grant its reading")
    where = spec.where(settings)
    if where is not None:
        condition = sql.SQL("case when {} then 1 end").format(queries.meets(where))
        if fault := _find_fault(connection, queries, condition, with_rights=True):
            what = f"the `where` of [queue.{spec.name}] cannot be used for {label}: {fault}"
            yield problem(what, "write a condition over the table's columns, and grant their reading")


def _find_fault(
    connection: Connection, queries: EntryQueries, value: sql.Composable, *, with_rights: bool
) -> str | None:
    """Return why an expression over the row cannot be computed; None where it can."""
    try:
        with connection.transaction():
            connection.execute(queries.compose("probe_expression", value=value), queries.parameters())
    except psycopg.Error as error:
        known = translate(error)
        if isinstance(known, DatabaseUnavailable):
            raise known from error
        is_right = isinstance(error, psycopg.errors.InsufficientPrivilege)
        return summarise(error) if with_rights or not is_right else None
    return None
