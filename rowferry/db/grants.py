"""The least that a role needs, as SQL to read, to run, or to hand to whoever owns the tables."""

from collections.abc import Iterator, Sequence
from typing import Literal

from psycopg import sql

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.entries import split_table
from rowferry.db.statements import statement
from rowferry.plan import Entries, Plan

Purpose = Literal["enqueuer", "worker", "operator", "grafana"]
"""What a role is for: to fill the queue, to work on it, to look at failures and requeue them, to read views only."""

PURPOSES: tuple[Purpose, ...] = ("enqueuer", "worker", "operator", "grafana")

_STATEMENTS: dict[Purpose, str] = {
    "enqueuer": "grant_enqueuer",
    "worker": "grant_worker",
    "operator": "grant_operator",
    "grafana": "grant_grafana",
}

_BETWEEN = sql.SQL("\n")


def compose_grants(role: str, purposes: Sequence[Purpose], plan: Plan | None) -> sql.Composed:
    """Return commented SQL that lets `role` do what these purposes need; nothing is ever revoked.

    Those on the user's tables come with a plan only. To be executed without parameters.
    """
    parts = [*_compose_own_grants(role, purposes), *(compose_table_grants(role, purposes, plan) if plan else ())]
    return _BETWEEN.join(parts)


def compose_table_grants(role: str, purposes: Sequence[Purpose], plan: Plan) -> Iterator[sql.Composed]:
    """Yield the part of the grants that concerns the user's own tables."""
    for entries in plan.entries:
        if "enqueuer" in purposes or "worker" in purposes:
            name = "grant_reading_table" if entries.where else "grant_reading_columns"
            yield _compose_for(entries, role, name)
        if "worker" in purposes:
            yield _compose_for(entries, role, "grant_rewriting_keys")


def apply_grants(connection: Connection, grants: sql.Composable) -> None:
    """Run what `compose_grants` returned, all of it or nothing.

    Raises UsageError when the role or a table does not exist, or this role may not grant.
    """
    with translated_errors(), connection.transaction():
        connection.execute(sql.Composed([grants]))


def _compose_own_grants(role: str, purposes: Sequence[Purpose]) -> Iterator[sql.Composed]:
    if set(purposes) != {"grafana"}:
        yield _end(statement("grant_basics", role=sql.Identifier(role)))
    for purpose in PURPOSES:
        if purpose in purposes:
            yield _end(statement(_STATEMENTS[purpose], role=sql.Identifier(role)))


def _compose_for(entries: Entries, role: str, name: str) -> sql.Composed:
    """Return a statement over the table of entries; a table without a schema is taken for one in `public`."""
    parts = split_table(entries.table)
    grants = statement(
        name,
        role=sql.Identifier(role),
        schema=sql.Identifier(parts[-2] if len(parts) > 1 else "public"),
        table=sql.Identifier(*parts),
        id=sql.Identifier(entries.id),
        key=sql.Identifier(entries.key),
    )
    return _end(grants)


def _end(grants: sql.Composed) -> sql.Composed:
    """Return statements so that others may follow."""
    return grants + sql.SQL(";")
