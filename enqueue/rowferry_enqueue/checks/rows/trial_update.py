"""Updates a few rows of each table as a worker would, and undoes it: what PostgreSQL refuses is known before a copy."""

from collections.abc import Iterator, Sequence

import psycopg
from psycopg import errors

from rowferry.batch import Entry
from rowferry.db.connection import Connection, summarise, translate
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.db.statements import own_queries
from rowferry.db.table_faults import explain_table_fault
from rowferry.errors import DatabaseBusy, DatabaseUnavailable
from rowferry.keys import map_entry
from rowferry_enqueue.checks.finding import Finding, part, problem

TRIED = 5
"""Rows of a table, spread over its ids; the first that is taken ends the trial."""
LEFT = "the row is left as it was (a trigger or rule?)"


def try_updates(connection: Connection, usable: Sequence[EntryQueries]) -> Iterator[Finding]:
    """Yield what PostgreSQL refuses for each of a few rows, by table; nothing is committed.

    Tables that this role may not update, and rows that other sessions hold, are left out. Raises DatabaseUnavailable
    when the connection is lost.
    """
    for queries in usable:
        if queries.entries.written_columns and queries.found.may_update:
            yield from _try_table(connection, queries)


def _try_table(connection: Connection, queries: EntryQueries) -> Iterator[Finding]:
    refused: list[psycopg.Error | None] = []
    try:
        with connection.transaction():
            query = queries.compose("sample_entries", wanted=queries.has_form("legacy"))
            rows = connection.execute(query, queries.parameters(most=TRIED)).fetchall()
        for entry in to_entries(rows):
            try:
                if _update(connection, queries, entry):
                    return
                refused.append(None)
            except psycopg.Error as error:
                refused.append(error)
    except psycopg.Error as error:
        refused = [error]
    if refused and not any(error is not None and _may_pass(error) for error in refused):
        yield _describe(queries, refused[0])


def _update(connection: Connection, queries: EntryQueries, entry: Entry) -> bool:
    """Update a row and undo that; return False where the database has left it as it was."""
    try:
        new = map_entry(entry, queries.entries).new_key
    except ValueError:
        return True  # it is said elsewhere
    parameters = queries.bind([entry], text_0=[new])
    with connection.transaction(force_rollback=True):
        connection.execute(own_queries()["begin_rows"], prepare=False)
        if not connection.execute(queries.compose_lock("production", skip_locked=True), parameters).fetchall():
            return True
        updated = connection.execute(queries.compose_update("production"), parameters).fetchall()
        return any(row["is_written"] for row in updated)


def _may_pass(error: psycopg.Error) -> bool:
    """Return whether another moment would do; so does a server that is read-only now, which is said elsewhere.

    Raises DatabaseUnavailable when the connection is lost.
    """
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return True
    known = translate(error)
    if isinstance(known, DatabaseUnavailable):
        raise known from error
    return isinstance(known, DatabaseBusy)


def _describe(queries: EntryQueries, error: psycopg.Error | None) -> Finding:
    """Return a problem; a part where the values of rows may be at fault: other rows may have others."""
    what = f"PostgreSQL refuses to update {queries.entries.label}: {LEFT if error is None else summarise(error)}"
    remedy = error and explain_table_fault(error)
    if remedy:
        return problem(what, remedy)
    if isinstance(error, errors.CheckViolation) and not error.diag.constraint_name:
        return problem(what, "create the partition that takes rows which have moved")
    return part(f"{what} (each of the rows that were tried)", "see whether that holds for all rows")
