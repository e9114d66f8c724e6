"""Checks that what a queue reads and writes is there and may be used: tables, columns, its condition over a row."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, sql

from rowferry.db.connection import Connection, summarise
from rowferry.db.description import split_table
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.plan import Plan, QueueSettings
from rowferry.queue_spec import QueueSpec, TableUse
from rowferry_enqueue.checks.finding import Finding, problem
from rowferry_enqueue.checks.queues.plan import PlannedQueue
from rowferry_enqueue.checks.rows.expressions import probe
from rowferry_enqueue.checks.rows.scans import ask
from rowferry_enqueue.checks.rows.table_shape import GRANTS

Rows = Sequence[dict[str, Any]]


class Columns(NamedTuple):
    """The columns of a table that a queue uses, by right, and what the database says of each."""

    table: str
    wanted: dict[str, Sequence[str]]
    described: Rows | None
    """None: this role may not use the table's schema."""

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(column for each in self.wanted.values() for column in each))


def check_columns(connection: Connection, plan: Plan, queue: PlannedQueue) -> Iterator[Finding]:
    """Yield the tables and columns that a queue needs, and that are not there, or not for this role."""
    for use in _list_columns(connection, plan, queue):
        missing = list(_find_missing(queue, use))
        yield from missing or _find_refused(use)


def find_missing_columns(connection: Connection, plan: Plan, queue: PlannedQueue) -> Iterator[Finding]:
    """Yield the tables and columns that a queue needs and that are not there, as far as this role may know."""
    for use in _list_columns(connection, plan, queue):
        yield from _find_missing(queue, use)


def _list_columns(connection: Connection, plan: Plan, queue: PlannedQueue) -> Iterator[Columns]:
    read = [
        TableUse(entries.table, selects=columns)
        for entries in queue.entries
        if (columns := queue.spec.columns(queue.settings, entries))
    ]
    for use in (*read, *queue.spec.tables(queue.settings, plan)):
        found = Columns(use.table, {"select": use.selects, "insert": use.inserts, "update": use.updates}, None)
        yield found._replace(described=_describe(connection, found))


def _describe(connection: Connection, use: Columns) -> Rows | None:
    table = sql.Identifier(*split_table(use.table)).as_string(connection)
    asked = ask(connection, statement("describe_columns"), {"table": table, "columns": use.names})
    if isinstance(asked, psycopg.Error):
        if not isinstance(asked, errors.InsufficientPrivilege):
            raise asked
        return None
    return asked


def _find_missing(queue: PlannedQueue, use: Columns) -> Iterator[Finding]:
    name = queue.spec.name
    if use.described is None:
        return
    if not any(row["is_table"] for row in use.described):
        yield problem(f"there is no table {use.table}, which the queue {name} uses", f"correct [queue.{name}]")
    elif missing := [row["name"] for row in use.described if not row["is_column"]]:
        lacks = f"the table {use.table} has no column {', '.join(missing)}, which the queue {name} uses"
        yield problem(lacks, f"correct [queue.{name}], or add it")


def _find_refused(use: Columns) -> Iterator[Finding]:
    if use.described is None:
        yield problem(f"this role may not use the schema of {use.table}", GRANTS)
        return
    found = {row["name"]: row for row in use.described}
    for right, those in use.wanted.items():
        if refused := [column for column in those if not found[column][f"may_{right}"]]:
            yield problem(f"this role may not {right} {', '.join(refused)} of {use.table}", GRANTS)


def check_queue_rows(
    connection: Connection, queries: EntryQueries, spec: QueueSpec, settings: QueueSettings, *, as_worker: bool = True
) -> Iterator[Finding]:
    """Yield what is wrong with the columns and the condition of a queue for one table.

    `as_worker`: this role must be allowed to read the columns, too; an enqueuer only needs them to be there.
    Raises DatabaseUnavailable when the connection is lost.
    """
    label = queries.entries.label
    for column in spec.columns(settings, queries.entries):
        error = probe(connection, queries, queries.read_columns([column]))
        if error and (as_worker or not isinstance(error, errors.InsufficientPrivilege)):
            what = f"[queue.{spec.name}] reads the column {column} of {label}, which cannot be read: {summarise(error)}"
            yield problem(what, "name a column of that table, and grant its reading")
    where = spec.where(settings)
    if where is not None:
        condition = sql.SQL("case when {} then 1 end").format(queries.meets(where))
        if error := probe(connection, queries, condition):
            what = f"the `where` of [queue.{spec.name}] cannot be used for {label}: {summarise(error)}"
            yield problem(what, "write a condition over the table's columns, and grant their reading")
