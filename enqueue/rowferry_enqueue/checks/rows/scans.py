"""Queries over tables that PostgreSQL may end or forbid: it is said what would allow them, and the others go on."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import errors, sql

from rowferry.db.connection import Connection, summarise, translate, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.errors import DatabaseUnavailable, RowferryError
from rowferry.plan import Entries
from rowferry_enqueue.checks.finding import Finding, note, problem
from rowferry_enqueue.checks.rows.table_shape import GRANTS

Look = Callable[[], list[Finding]]
Row = dict[str, Any]

LONGER = (
    "let this role take longer: PGOPTIONS='-c statement_timeout=0' for one command, or `alter role … set "
    "statement_timeout = 0`"
)
UNLOCKED = "run it again when the lock is released, or wait longer for it by ROWFERRY_LOCK_TIMEOUT"
_STATEMENT_ENDED = (errors.QueryCanceled, errors.LockNotAvailable)
_REMEDIES: tuple[tuple[type[psycopg.Error], str, str], ...] = (
    (errors.QueryCanceled, "timeout", LONGER),
    (errors.QueryCanceled, "", "run it again"),
    (errors.LockNotAvailable, "", UNLOCKED),
    (errors.InsufficientPrivilege, "", GRANTS),
    (errors.FeatureNotSupported, "set-returning", "put the rows that it yields into an array: array(select …)"),
    (errors.UndefinedFunction, "digest(", "run `create extension pgcrypto`, or use md5() or sha256() of PostgreSQL"),
    (errors.UndefinedTable, "FROM-clause", "name the row `e`, as in `e.id`"),
)
"""What to do about an error of PostgreSQL that has these words; the first that fits."""


def ask(
    connection: Connection, query: sql.Composed | sql.SQL, parameters: dict[str, Any] | None = None
) -> list[Row] | psycopg.Error:
    """Return the rows of a query in a transaction of its own, or the error in their place.

    Raises DatabaseUnavailable when the connection is lost.
    """
    try:
        with connection.transaction():
            return connection.execute(query, parameters or {}).fetchall()
    except psycopg.Error as error:
        _raise_lost(error)
        return error


def scan(
    connection: Connection, look: Look, *tables: EntryQueries, usable: list[EntryQueries] | None = None
) -> list[Finding]:
    """Return what a scan of one table, or of two, finds in a transaction of its own; a problem where it fails.

    `usable`: a table that could not be scanned is removed from it. Raises DatabaseUnavailable when the connection is
    lost.
    """
    try:
        with connection.transaction():
            return look()
    except (psycopg.Error, RowferryError) as error:
        if isinstance(error, DatabaseUnavailable):
            raise
        cause = error if isinstance(error, psycopg.Error) else error.__cause__
        entries = [queries.entries for queries in tables]
        found = describe_unscanned(entries, cause) if isinstance(cause, psycopg.Error) else problem(error)
    if usable is not None:
        usable[:] = [queries for queries in usable if queries not in tables]
    return [found]


def run_check(check: Look) -> list[Finding]:
    """Return what a check finds; any error of the server but a lost connection is a problem."""
    try:
        with translated_errors():
            return check()
    except DatabaseUnavailable:
        raise
    except RowferryError as error:
        return [problem(error)]


def describe_unscanned(tables: Sequence[Entries], error: psycopg.Error) -> Finding:
    """Return the problem that a table could not be scanned, or two not be compared.

    Raises DatabaseUnavailable when the connection is lost.
    """
    _raise_lost(error)
    if len(tables) == 1 and not isinstance(error, _STATEMENT_ENDED):
        return refuse(tables[0], error)
    labels = " and ".join(dict.fromkeys(entries.label for entries in tables))
    could_not = "could not be scanned" if len(tables) == 1 else "could not be compared"
    return problem(f"{labels} {could_not}: {summarise(error)}", _find_remedy(error))


def refuse(entries: Entries, error: psycopg.Error, part: str = "") -> Finding:
    """Return an error of the server as a problem; `part`: of the plan, where it is known which one is at fault.

    Raises DatabaseUnavailable when the connection is lost.
    """
    if isinstance(error, _STATEMENT_ENDED):
        return describe_unscanned([entries], error)
    _raise_lost(error)
    if part and not isinstance(error, errors.InsufficientPrivilege):
        wanted = "a condition" if part == "`where`" else "an expression that yields text or text[]"
        what = f"the {part} of {entries.label} cannot be used: {summarise(error)}"
        return problem(what, _find_remedy(error) or f"write {wanted} over the table's columns")
    named = [f"`{name}`" for name in ("moved", "where", "objects", "optional") if getattr(entries, name)]
    correct = f"correct {' or '.join(named)} in the plan" if named else ""
    if entries.path and isinstance(error, errors.InvalidTextRepresentation) and "json" in summarise(error):
        column = sql.Identifier(entries.key).as_string()
        where = json.dumps(f"{column} ~ '^[[:space:]]*[[{{]'", ensure_ascii=False)
        correct = f"correct rows whose text is no JSON, or leave them out: where = {where}"
    remedy = _find_remedy(error) or correct
    return problem(f"{entries.label} cannot be read: {summarise(error)}", remedy)


def _find_remedy(error: psycopg.Error) -> str:
    words = summarise(error)
    return next((remedy for kind, sign, remedy in _REMEDIES if isinstance(error, kind) and sign in words), "")


def _raise_lost(error: psycopg.Error) -> None:
    if isinstance(known := translate(error), DatabaseUnavailable):
        raise known from error


def tell_unscanned(plan_entries: Sequence[Entries], scanned: Sequence[EntryQueries]) -> Iterator[Finding]:
    """Yield which tables were left out of the comparisons, since they could not be read or scanned."""
    known = [queries.entries for queries in scanned]
    left = [entries.label for entries in plan_entries if entries not in known]
    if left:
        what = "what their keys become, and whether two objects get one key, is not known"
        yield note(f"not scanned: {', '.join(left)}; {what}", "fix the problems above, and run the check again")
