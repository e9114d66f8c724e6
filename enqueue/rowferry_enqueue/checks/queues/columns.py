"""Checks that what a queue reads and writes is there and may be used: tables, columns, its condition over a row."""

from collections.abc import Iterator, Mapping

from psycopg import errors, sql

from rowferry.db.connection import Connection, summarise
from rowferry.db.description import describe_columns
from rowferry.db.entries import EntryQueries
from rowferry.plan import Plan, QueueSettings
from rowferry.queue_spec import QueueSpec, TableUse
from rowferry_enqueue.checks.finding import Finding, problem
from rowferry_enqueue.checks.queues.plan import PlannedQueue
from rowferry_enqueue.checks.rows.expressions import probe
from rowferry_enqueue.checks.rows.table_shape import GRANTS


def check_columns(
    connection: Connection, plan: Plan, queue: PlannedQueue, *, as_worker: bool = True
) -> Iterator[Finding]:
    """Yield the tables and columns that a queue needs, and that are not there.

    `as_worker`: or not for this role; an enqueuer only needs them to be there, as far as it may know.
    """
    for use in _list_uses(plan, queue):
        wanted = {"select": use.selects, "insert": use.inserts, "update": use.updates}
        try:
            with connection.transaction():
                found = describe_columns(connection, use.table, _name_columns(use))
        except errors.InsufficientPrivilege:
            if as_worker:
                yield problem(f"this role may not use the schema of {use.table}", GRANTS)
            continue
        if missing := _find_missing(queue.spec.name, use, found):
            yield missing
            continue
        for right, columns in wanted.items() if as_worker else ():
            if refused := [each for each in columns if found is None or right not in found[each].rights]:
                yield problem(f"this role may not {right} {', '.join(refused)} of {use.table}", GRANTS)


def _list_uses(plan: Plan, queue: PlannedQueue) -> list[TableUse]:
    """Return the tables that a queue reads or writes beside what its batches need."""
    read = ((entries.table, queue.spec.columns(queue.settings, entries)) for entries in queue.entries)
    selects = [TableUse(table, selects=columns) for table, columns in read if columns]
    return [*selects, *queue.spec.tables(queue.settings, plan)]


def _name_columns(use: TableUse) -> list[str]:
    return list(dict.fromkeys((*use.selects, *use.inserts, *use.updates)))


def _find_missing(queue: str, use: TableUse, found: Mapping[str, object] | None) -> Finding | None:
    if found is None:
        return problem(f"there is no table {use.table}, which the queue {queue} uses", f"correct [queue.{queue}]")
    if missing := [column for column in _name_columns(use) if column not in found]:
        lacks = f"the table {use.table} has no column {', '.join(missing)}, which the queue {queue} uses"
        return problem(lacks, f"correct [queue.{queue}], or add it")
    return None


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
