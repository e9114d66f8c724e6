"""Checks that the tables and columns that a queue reads and writes are there, and that this role may use them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from psycopg import errors, sql

from rowferry.db.connection import Connection
from rowferry.db.description import split_table
from rowferry.db.statements import statement
from rowferry.plan import Plan
from rowferry.queue_spec import TableUse
from rowferry_enqueue.checks.finding import Finding, problem
from rowferry_enqueue.checks.queues.plan import PlannedQueue
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
    try:
        with connection.transaction():
            query = statement("describe_columns")
            return connection.execute(query, {"table": table, "columns": use.names}).fetchall()
    except errors.InsufficientPrivilege:
        return None


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
