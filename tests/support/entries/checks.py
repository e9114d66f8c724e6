"""Checks as the tests make them, and what they look for in the findings."""

from typing import Any

from psycopg import sql

from rowferry.db.connection import connect
from rowferry.progress import ignore_progress
from rowferry_enqueue.check import Finding, check_plan, check_rows
from support.entries.entry_table import EntryTable, trusted
from support.postgres.roles import new_role


def check(table: EntryTable, **more: Any) -> list[Finding]:
    """Check the whole plan, buckets included; an empty table is allowed unless `more` says otherwise."""
    with table.session("check") as connection:
        return list(check_plan(connection, table.read_plan(), **{"allow_empty": True, **more}))


def problems(table: EntryTable, **more: Any) -> list[str]:
    return [finding.what for finding in check(table, **more) if finding.level == "problem"]


def check_rows_of(table: EntryTable) -> list[Finding]:
    """Check tables and keys only."""
    with table.session("check") as connection:
        return list(check_rows(connection, table.read_plan(), "fail", ignore_progress))


def row_problems(table: EntryTable) -> list[str]:
    """Return the problems of tables and keys."""
    return [finding.what for finding in check_rows_of(table) if finding.level == "problem"]


def entries_of(table: EntryTable) -> dict[str, Any]:
    """Return the first [[entries]] of the plan, to be changed by a test."""
    found: dict[str, Any] = table.plan["entries"][0]
    return found


def add_second_table(table: EntryTable, **entries: str) -> None:
    """Add a table `banners` and [[entries]] over it, like the first but for what is given."""
    table.execute("create table public.banners (id bigint primary key, path text)")
    table.plan["entries"].append({**entries_of(table), "table": "public.banners", **entries})


def check_as_role(table: EntryTable, granted: str) -> list[Finding]:
    """Check tables and keys as a role that has been granted just this: `select on public.avatars`, for example."""
    with new_role(table.dsn) as role, connect("check", autocommit=True) as connection:
        table.execute(sql.SQL("grant {} to {}").format(trusted(granted), sql.Identifier(role)))
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        return list(check_rows(connection, table.read_plan(), "fail", ignore_progress))
