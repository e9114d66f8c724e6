"""The least privileges of a role, as SQL to read, to run, or to hand to the owner of the tables."""

from collections.abc import Iterator, Sequence
from typing import Literal, LiteralString, cast

from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.description import split_table
from rowferry.db.statements import printed_statement
from rowferry.errors import UsageError
from rowferry.plan import Entries, Plan
from rowferry.queue_spec import QueueSpec, TableUse
from rowferry.queues import find_queue, read_settings

Purpose = Literal["enqueuer", "worker", "operator", "grafana"]
"""What a role does: fills the queue, works on it, looks at failures and requeues them, or only reads views."""

PURPOSES: tuple[Purpose, ...] = ("enqueuer", "worker", "operator", "grafana")

_BETWEEN = sql.SQL("\n")


def compose_grants(role: str, purposes: Sequence[Purpose], plan: Plan | None) -> sql.Composed:
    """Return commented SQL, to be executed without parameters. It revokes nothing.

    With a plan, it has the grants on the user's tables too.
    """
    parts = [*_compose_own_grants(role, purposes), *(compose_table_grants(role, purposes, plan) if plan else ())]
    return _BETWEEN.join(parts)


def compose_limits(role: str, purposes: Sequence[Purpose]) -> sql.Composed | None:
    """Return commented SQL that sets what each session of a role begins with; None: nothing, for these purposes."""
    if set(purposes) != {"grafana"}:
        return None
    return _end(printed_statement("limit_grafana", role=sql.Identifier(role)))


def compose_table_grants(role: str, purposes: Sequence[Purpose], plan: Plan) -> Iterator[sql.Composed]:
    """Yield the grants on the tables of a plan, and on those that its queues use.

    Raises UsageError where a queue is not known here, or its settings are wrong.
    """
    moves = plan.has_both_sides  # else no queue of rowferry rewrites a row
    for entries in plan.entries:
        if "enqueuer" in purposes or "worker" in purposes:
            name = "grant_reading_table" if entries.reads_other_columns else "grant_reading_columns"
            yield _compose_for(entries, role, name)
        if "worker" in purposes and entries.written_columns and moves:
            yield _compose_for(entries, role, "grant_rewriting_keys")
    settings = read_settings(plan)
    names = dict.fromkeys([*settings, *(then for queue in settings.values() for then in queue.then)])
    for spec in map(find_queue, names):
        yield from _compose_queue_grants(role, purposes, plan, spec)


def _compose_queue_grants(
    role: str, purposes: Sequence[Purpose], plan: Plan, spec: QueueSpec
) -> Iterator[sql.Composed]:
    """Yield what a queue needs beside the columns that all queues read."""
    settings = spec.read_settings(plan)
    meant = [one for one in plan.entries if "table" in spec.sources and settings.means(one.label)]
    for entries in meant:
        if spec.where(settings) is not None and not entries.reads_other_columns:
            if "enqueuer" in purposes or "worker" in purposes:
                yield _compose_for(entries, role, "grant_reading_table")
        elif "worker" in purposes and (columns := spec.columns(settings, entries)):
            yield _compose_use(TableUse(entries.table, selects=columns), role, spec, "select", columns)
    for use in spec.tables(settings, plan) if "worker" in purposes else ():
        if use.selects:
            yield _compose_use(use, role, spec, "select", use.selects)
        if use.inserts:
            yield _compose_use(use, role, spec, "insert", use.inserts)
        if use.updates:
            yield _compose_use(use, role, spec, "update", use.updates)


def apply_grants(connection: Connection, grants: sql.Composable) -> None:
    """Run the result of `compose_grants` in one transaction.

    Raises UsageError when the role or a table does not exist, or this role may not grant.
    """
    with translated_errors(), connection.transaction():
        connection.execute(sql.Composed([grants]))


def apply_limits(connection: Connection, limits: sql.Composable) -> bool:
    """Run the result of `compose_limits` in one transaction; return whether this role may."""
    try:
        with translated_errors(), connection.transaction():
            connection.execute(sql.Composed([limits]))
    except UsageError as error:
        if isinstance(error.__cause__, InsufficientPrivilege):
            return False
        raise
    return True


def _compose_own_grants(role: str, purposes: Sequence[Purpose]) -> Iterator[sql.Composed]:
    others = [purpose for purpose in PURPOSES if purpose in purposes and purpose != "grafana"]
    for name in ("views", *(["tables"] if others else []), *others):
        yield _end(printed_statement(f"grant_{name}", role=sql.Identifier(role)))


def _compose_for(entries: Entries, role: str, name: str) -> sql.Composed:
    """Return a query over the table of entries; a table without a schema is one of `public`."""
    parts = split_table(entries.table)
    grants = printed_statement(
        name,
        role=sql.Identifier(role),
        schema=sql.Identifier(parts[-2] if len(parts) > 1 else "public"),
        table=sql.Identifier(*parts),
        columns=sql.SQL(", ").join(map(sql.Identifier, entries.columns)),
        written=sql.SQL(", ").join(map(sql.Identifier, entries.written_columns)),
    )
    return _end(grants)


def _compose_use(
    use: TableUse, role: str, spec: QueueSpec, right: LiteralString, columns: Sequence[str]
) -> sql.Composed:
    """Return the grant of one right on columns that a queue uses."""
    parts = split_table(use.table)
    grants = printed_statement(
        "grant_queue",
        role=sql.Identifier(role),
        schema=sql.Identifier(parts[-2] if len(parts) > 1 else "public"),
        table=sql.Identifier(*parts),
        queue=sql.SQL(cast("LiteralString", spec.name)),  # a lower-case word
        right=sql.SQL(right),
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
    )
    return _end(grants)


def _end(grants: sql.Composed) -> sql.Composed:
    """Return statements so that others may follow."""
    return grants + sql.SQL(";")
