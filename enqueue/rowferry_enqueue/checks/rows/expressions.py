"""Checks the SQL and the values that a plan has for one table, by queries that read no row."""

from collections.abc import Iterator

import psycopg
from psycopg import sql

from rowferry.db.called_functions import list_expressions, refuse_functions
from rowferry.db.connection import Connection, literal, summarise
from rowferry.db.entries import EntryQueries
from rowferry.db.forms import compute_keys
from rowferry.errors import MigrationFault
from rowferry_enqueue.checks.finding import Finding, problem
from rowferry_enqueue.checks.rows.scans import ask, refuse


def check_expressions(connection: Connection, queries: EntryQueries) -> Iterator[Finding]:
    """Yield what is wrong with `moved`, `where`, `objects` and `optional`, each by itself.

    Raises DatabaseUnavailable when the connection is lost.
    """
    yield from _check_states(connection, queries)
    try:
        refuse_functions(connection, queries, list_expressions(queries))
    except MigrationFault as fault:
        yield problem(fault)
    except psycopg.Error:
        pass  # what is wrong with which expression is said below
    entries = queries.entries
    values = {"where": entries.where, "objects": entries.objects, "optional": entries.optional}
    for name, expression in values.items():
        if expression and (error := probe(connection, queries, _yield(name, expression))):
            yield refuse(entries, error, f"`{name}`")


def _yield(name: str, expression: str) -> sql.Composable:
    if name == "where":
        return sql.SQL("case when {} then 1 end").format(literal(f"({expression}\n)"))
    return compute_keys(expression)


def probe(connection: Connection, queries: EntryQueries, value: sql.Composable) -> psycopg.Error | None:
    """Return why an expression over a row cannot be computed; None where it can, as far as no row is read."""
    asked = ask(connection, queries.compose("probe_expression", value=value), queries.parameters())
    return asked if isinstance(asked, psycopg.Error) else None


def _check_states(connection: Connection, queries: EntryQueries) -> Iterator[Finding]:
    entries = queries.entries
    for number, (column, type_name) in enumerate(zip(entries.moved, queries.found.state_types, strict=True)):
        values: list[str] = [queries.parameters()[f"{form}_state_{number}"] for form in ("legacy", "production")]
        faults = [_find_fault_of_state(connection, queries, value, type_name or "text") for value in values]
        for value, fault in zip(values, faults, strict=True):
            if fault:
                what = f"{value!r} in `moved.{column}` of {entries.label} is no value of {type_name}: {fault}"
                yield problem(what, "write it as PostgreSQL shows it in that column")
        if not any(faults) and _are_one(connection, queries, values, type_name or "text"):
            what = (
                f"{values[0]!r} and {values[1]!r} in `moved.{column}` of {entries.label} are one value of {type_name}"
            )
            yield problem(what, "give two that the column tells apart")


def _find_fault_of_state(connection: Connection, queries: EntryQueries, value: str, type_name: str) -> str | None:
    query = queries.compose("cast_state", type=literal(type_name))
    asked = ask(connection, query, queries.parameters(value=value))
    if isinstance(asked, psycopg.Error):
        return summarise(asked)
    held: str = asked[0]["held"]
    # An explicit cast cuts a text that is too long.
    return f"it would be cut to {held!r}" if value.startswith(held) and held != value else None


def _are_one(connection: Connection, queries: EntryQueries, values: list[str], type_name: str) -> bool:
    """Return whether a column takes two values for one; False where its type has no equality, which is found later."""
    query = queries.compose("compare_states", type=literal(type_name))
    asked = ask(connection, query, queries.parameters(legacy=values[0], production=values[1]))
    return not isinstance(asked, psycopg.Error) and asked[0]["are_one"]
