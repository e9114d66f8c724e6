"""Checks documents: which rows hold something that is none, and so cannot be read."""

from collections.abc import Iterator, Sequence

import psycopg
from psycopg import errors, sql

from rowferry.db.connection import Connection, fetch_one, identifiers, summarise
from rowferry.db.documents import read_document
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.formatting import count
from rowferry.progress import OnProgress
from rowferry_enqueue.checks.finding import Finding, note, problem
from rowferry_enqueue.checks.rows.expressions import leave_out_texts
from rowferry_enqueue.checks.rows.scans import describe_unscanned


def check_documents(
    connection: Connection, usable: Sequence[EntryQueries], on_progress: OnProgress
) -> Iterator[tuple[EntryQueries, Finding]]:
    """Yield what is found, with the entries that it is about; one scan a table.

    A problem: they cannot be read. Raises DatabaseUnavailable when the connection is lost.
    """
    for queries in usable:
        if queries.entries.path is not None and queries.found.key_kind != "jsonb":
            on_progress(f"reading the documents of {queries.entries.label}")
            yield from ((queries, finding) for finding in _check_table(connection, queries))


def _check_table(connection: Connection, queries: EntryQueries) -> Iterator[Finding]:
    entries, kind = queries.entries, queries.found.key_kind
    column = sql.SQL("e.{}").format(identifiers(entries.key))
    is_unreadable = statement(
        "is_unreadable_array" if kind == "array" else "is_unreadable_text",
        column=column,
        document=read_document(entries, queries.found),
    )
    query = queries.compose("count_unreadable", is_unreadable=is_unreadable)
    try:
        with connection.transaction():
            row = fetch_one(connection, query, queries.parameters())
    except errors.DataError as error:
        what = f"some {entries.key} of {entries.table} holds no document: {summarise(error)}"
        yield problem(what, leave_out_texts(entries))
        return
    except psycopg.Error as error:
        yield describe_unscanned([entries], error)
        return
    if row["rows"]:
        what = "an array of one dimension that begins with 1" if kind == "array" else "JSON that jsonb can hold"
        rows = count(row["rows"], "row", "rows")
        yield note(f"{entries.label}: {rows} hold no {what}, for example {row['example']}, and are no entries")
    if kind != "array" and entries.has_two_texts:
        yield note(
            f"{entries.label} is written as jsonb writes it: the values stay, blanks, the order of members and "
            "members that a document holds twice do not"
        )
