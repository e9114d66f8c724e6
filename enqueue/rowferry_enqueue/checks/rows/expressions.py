"""Checks the SQL and the values that a plan has for one table, by queries that read no row."""

import json
from collections.abc import Iterator

import psycopg
from psycopg import errors, sql

from rowferry.db.called_functions import list_expressions, refuse_functions
from rowferry.db.connection import Connection, fetch_one, literal, summarise, translate
from rowferry.db.entries import EntryQueries
from rowferry.db.forms import compute_keys
from rowferry.errors import DatabaseUnavailable, MigrationFault
from rowferry.plan import Entries
from rowferry.plan.path import parse_path
from rowferry_enqueue.checks.finding import Finding, problem
from rowferry_enqueue.checks.rows.scans import describe_unscanned
from rowferry_enqueue.checks.rows.table_shape import GRANTS

_BEGINS = {".": "{", "*": "{", "[": "["}
"""How documents begin, by the first step of a path."""

PGCRYPTO = (
    "digest() is of the extension pgcrypto: run `create extension pgcrypto`, and write its schema in front of the name "
    "if the search_path lacks it"
)


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
    if entries.where:
        condition = sql.SQL("case when {} then 1 end").format(literal(f"({entries.where}\n)"))
        yield from _probe(connection, queries, "where", condition)
    for name, expression in (("objects", entries.objects), ("optional", entries.optional)):
        if expression:
            yield from _probe(connection, queries, name, compute_keys(expression))


def _probe(connection: Connection, queries: EntryQueries, name: str, value: sql.Composable) -> Iterator[Finding]:
    try:
        with connection.transaction():
            connection.execute(queries.compose("probe_expression", value=value), queries.parameters())
    except psycopg.Error as error:
        yield refuse(queries.entries, error, f"`{name}`")


def refuse(entries: Entries, error: psycopg.Error, part: str = "") -> Finding:
    """Return an error of the server as a problem; `part`: of the plan, where it is known which one is at fault.

    Raises DatabaseUnavailable when the connection is lost.
    """
    known = translate(error)
    if isinstance(known, DatabaseUnavailable):
        raise known from error
    if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable):
        return describe_unscanned([entries], error)
    words = summarise(error)
    if isinstance(error, errors.InsufficientPrivilege):
        return problem(f"{entries.label} cannot be read: {words}", GRANTS)
    if isinstance(error, errors.InvalidTextRepresentation) and "json" in words and not part:
        return problem(f"{entries.label} cannot be read: {words}", leave_out_texts(entries))
    if not part:
        named = [f"`{name}`" for name in ("moved", "where", "objects", "optional") if getattr(entries, name)]
        remedy = f"correct {' or '.join(named)} in the plan" if named else ""
        return problem(f"{entries.label} cannot be read: {words}", remedy)
    if part == "`where`":
        remedy = "write a condition over the table's columns"
    elif isinstance(error, errors.FeatureNotSupported) and "set-returning" in words:
        remedy = "put the rows that it yields into an array: array(select …)"
    elif isinstance(error, errors.UndefinedFunction) and "digest(" in words:
        remedy = f"{PGCRYPTO}; PostgreSQL itself has md5() and sha256()"
    elif isinstance(error, errors.UndefinedTable) and "FROM-clause" in words:
        remedy = f"name the row of {entries.table} `e`, for example `e.{entries.ids[0]}`"
    else:
        remedy = "write an expression over the table's columns that yields text or text[]"
    return problem(f"the {part} of {entries.label} cannot be used: {words}", remedy)


def leave_out_texts(entries: Entries) -> str:
    """Return what to do about texts that are no JSON, by a condition that every document with the path meets.

    Below PostgreSQL 16, no query can ask first.
    """
    first = next(iter(parse_path(entries.path or "$")), "")[:1]
    condition = f"{sql.Identifier(entries.key).as_string()} ~ '^[[:space:]]*[{_BEGINS.get(first, '[{')}]'"
    example = f"where = {json.dumps(condition, ensure_ascii=False)}"
    return f"correct rows whose text is no JSON, or leave them out in the plan, for example {example}"


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
    try:
        with connection.transaction():
            held: str = fetch_one(connection, query, queries.parameters(value=value))["held"]
    except psycopg.Error as error:
        known = translate(error)
        if isinstance(known, DatabaseUnavailable):
            raise known from error
        return summarise(error)
    # An explicit cast cuts a text that is too long.
    return f"it would be cut to {held!r}" if value.startswith(held) and held != value else None


def _are_one(connection: Connection, queries: EntryQueries, values: list[str], type_name: str) -> bool:
    """Return whether a column takes two values for one; False where its type has no equality, which is found later."""
    query = queries.compose("compare_states", type=literal(type_name))
    try:
        with connection.transaction():
            parameters = queries.parameters(legacy=values[0], production=values[1])
            return fetch_one(connection, query, parameters)["are_one"]
    except psycopg.Error as error:
        known = translate(error)
        if isinstance(known, DatabaseUnavailable):
            raise known from error
        return False
