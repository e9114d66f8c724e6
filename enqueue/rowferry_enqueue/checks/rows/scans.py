"""Scans of tables: one that PostgreSQL ends or forbids is said, with what would let it, and the others go on."""

from collections.abc import Callable, Iterator, Sequence

import psycopg
from psycopg import errors

from rowferry.db.connection import Connection, summarise, translate, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.errors import DatabaseUnavailable, RowferryError
from rowferry.plan import Entries
from rowferry_enqueue.checks.finding import Finding, note, problem
from rowferry_enqueue.checks.rows.table_shape import GRANTS

Look = Callable[[], list[Finding]]

LONGER = (
    "let this role take longer: PGOPTIONS='-c statement_timeout=0' for one command, or `alter role … set "
    "statement_timeout = 0`"
)
UNLOCKED = "run it again when the lock is released, or wait longer for it by ROWFERRY_LOCK_TIMEOUT"


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
    except psycopg.Error as error:
        found = describe_unscanned([queries.entries for queries in tables], error)
    except DatabaseUnavailable:
        raise
    except RowferryError as error:
        cause, found = error.__cause__, problem(error)
        if isinstance(cause, psycopg.Error):
            found = describe_unscanned([queries.entries for queries in tables], cause)
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
    if isinstance(known := translate(error), DatabaseUnavailable):
        raise known from error
    words = summarise(error)
    labels = " and ".join(dict.fromkeys(entries.label for entries in tables))
    could_not = "could not be scanned" if len(tables) == 1 else "could not be compared"
    remedies: dict[type[psycopg.Error], str] = {
        errors.QueryCanceled: LONGER if "timeout" in words else "run it again",
        errors.LockNotAvailable: UNLOCKED,
        errors.InsufficientPrivilege: GRANTS,
    }
    return problem(f"{labels} {could_not}: {words}", remedies.get(type(error), ""))


def tell_unscanned(plan_entries: Sequence[Entries], scanned: Sequence[EntryQueries]) -> Iterator[Finding]:
    """Yield which tables were left out of the comparisons, since they could not be read or scanned."""
    known = [queries.entries for queries in scanned]
    left = [entries.label for entries in plan_entries if entries not in known]
    if left:
        what = "what their keys become, and whether two objects get one key, is not known"
        yield note(f"not scanned: {', '.join(left)}; {what}", "mend the problems above, and run the check again")
