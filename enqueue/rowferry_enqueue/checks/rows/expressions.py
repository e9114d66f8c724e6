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
    """Yield the values of `moved` that the type of their column does not have, or takes for one."""
    entries = queries.entries
    for number, (column, type_name) in enumerate(zip(entries.moved, queries.found.state_types, strict=True)):
        legacy, production = (queries.parameters()[f"{form}_state_{number}"] for form in ("legacy", "production"))
        where = f"{legacy!r} and {production!r} in `moved.{column}` of {entries.label}"
        query = queries.compose("compare_states", type=literal(type_name or "text"))
        asked = ask(connection, query, queries.parameters(legacy=legacy, production=production))
        if isinstance(asked, psycopg.errors.DataError):
            what = f"{where} cannot both be values of {type_name}: {summarise(asked)}"
            yield problem(what, "write them as PostgreSQL shows them in that column")
        elif not isinstance(asked, psycopg.Error) and asked[0]["are_one"]:  # a type without equality is found later
            yield problem(f"{where} are one value of {type_name}", "give two that the column tells apart")
