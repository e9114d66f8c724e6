"""Checks the rows of each table: documents can be read, and every legacy key becomes a usable production key."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from psycopg import sql

from rowferry.db.connection import Connection, identifiers
from rowferry.db.documents import read_document
from rowferry.db.entries import EntryQueries
from rowferry.db.forms import read_text
from rowferry.db.statements import statement
from rowferry.formatting import count
from rowferry.keys import MAX_KEY_BYTES, leaves_signed
from rowferry.plan import Entries
from rowferry.progress import OnProgress
from rowferry_enqueue.checks.finding import Finding, fine, note, problem, quote_key
from rowferry_enqueue.checks.rows.pairs import check_clashes
from rowferry_enqueue.checks.rows.scans import Row, scan

_PREFIXES = "correct those keys, or `from` and `to` in the plan"
_KEY_FAULTS = {
    "badly encoded": ("cannot be decoded", "correct those texts, or leave out `encoding` in the plan"),
    "outside": (
        "would have computed keys that do not begin with `legacy_object`",
        "give as `legacy_object` (by default `from`) what all keys of `objects` and `optional` begin with",
    ),
    "no object": ("would have an empty legacy key", "correct those texts, or `from` and `legacy_object` in the plan"),
    "empty": ("would have an empty production key", _PREFIXES),
    "too long": (
        f"would have a production key of more than {MAX_KEY_BYTES:,} bytes, the most that S3 takes",
        _PREFIXES,
    ),
    "still legacy": ("would have a production key that still has the legacy form", _PREFIXES),
    "too wide": ("would have a production key that is too long for the column", _PREFIXES),
}
"""What is wrong with a key, and what to do about it."""
Read = Callable[..., list[Row]]
"""Returns the rows of a query by its name and its parts."""


def check_keys(connection: Connection, usable: list[EntryQueries], on_progress: OnProgress) -> Iterator[Finding]:
    """Yield the findings; one scan a table for each check, and one for each pair of tables whose keys could clash.

    Removes from `usable` the tables that could not be scanned.
    """
    for queries in list(usable):
        on_progress(f"mapping the legacy keys of {queries.entries.label}")
        yield from scan(connection, partial(_check_table, connection, queries), queries, usable=usable)
    clashes = list(check_clashes(connection, usable, on_progress))
    yield from clashes
    if usable and not clashes:
        yield fine("no two legacy keys become the same production key")


def _check_table(connection: Connection, queries: EntryQueries) -> list[Finding]:
    length = read_column_length(queries.found.key_base_type or "")
    parameters = queries.parameters(max_bytes=MAX_KEY_BYTES, column_length=length)

    def read(name: str, **parts: sql.Composable) -> list[Row]:
        return connection.execute(queries.compose(name, **parts), parameters).fetchall()

    return [finding for check in CHECKS for finding in check(queries, read)]


def _check_documents(queries: EntryQueries, read: Read) -> Iterator[Finding]:
    """Yield how many rows hold something else than a document."""
    entries, kind = queries.entries, queries.found.key_kind
    if entries.path is None or kind == "jsonb":
        return
    is_unreadable = statement(
        "is_unreadable_array" if kind == "array" else "is_unreadable_text",
        column=sql.SQL("e.{}").format(identifiers(entries.key)),
        document=read_document(entries, queries.found),
    )
    (row,) = read("count_examples", is_meant=is_unreadable)
    if row["rows"]:
        what = "an array of one dimension that begins with 1" if kind == "array" else "JSON that jsonb can hold"
        rows = count(row["rows"], "row", "rows")
        yield note(f"{entries.label}: {rows} hold no {what}, for example {row['example']}, and are no entries")


def _check_faults(queries: EntryQueries, read: Read) -> Iterator[Finding]:
    entries = queries.entries
    becomes_production = statement("is_production", text=sql.SQL("e.production_text"))
    rows = read("key_faults", object_keys=queries.compose_keys("legacy"), becomes_production=becomes_production)
    counted = {row["fault"]: row for row in rows}
    usable: int = counted[None]["keys"] if None in counted else 0
    words = f"{entries.label}: {_count_keys(entries, usable)} with usable production keys"
    yield fine(words) if usable else note(words)
    for fault, (description, remedy) in _KEY_FAULTS.items():
        if fault in counted:
            subject, example = _count_keys(entries, counted[fault]["keys"]), quote_key(counted[fault]["example"])
            yield problem(f"{entries.label}: {subject} {description}, for example {example}", remedy)
    if entries.objects is not None:
        yield from _find_rows_without_objects(entries, read, has_entries=bool(counted))


def _find_rows_without_objects(entries: Entries, read: Read, *, has_entries: bool) -> Iterator[Finding]:
    """Note the rows that an expression leaves out by yielding nothing, meant or not; a problem where it is all."""
    (row,) = read("rows_without_objects")
    if row["rows_with_optional"] and not has_entries:
        what = "`objects` yields nothing for any row, so no row is an entry and no object of `optional` is copied"
        remedy = "name in `objects` what each row must have, or copy these objects by [[objects]]"
        yield problem(f"{entries.label}: {what}", remedy)
    elif row["rows"]:
        rows = count(row["rows"], "row has a legacy text and is no entry", "rows have legacy texts and are no entries")
        what = f"{rows}, since `objects` yields null or nothing, for example {entries.id_words} {row['example']}"
        if row["rows_with_optional"]:
            what += f"; objects of `optional` are not copied for {row['rows_with_optional']:,} of them"
        remedy = "wrap columns that may be null in coalesce(), unless these rows have no object"
        yield note(f"{entries.label}: {what}", remedy)


def _check_presigned(queries: EntryQueries, read: Read) -> Iterator[Finding]:
    """Yield how many rows hold presigned URLs, which no worker rewrites."""
    entries = queries.entries
    if not leaves_signed(entries):
        return
    (row,) = read("count_examples", is_meant=statement("is_presigned", text=read_text(entries, queries.found)))
    if row["rows"]:
        rows = count(row["rows"], "row holds a presigned URL", "rows hold presigned URLs")
        what = f"{rows}, which are valid for one bucket and stay as they are"
        example = f"for example {entries.id_words} {row['example']}"
        yield note(f"{entries.label}: {what}, {example}", "let the application sign new ones")


CHECKS = (_check_documents, _check_faults, _check_presigned)
"""Of the rows of a table: each reads by a query, and says what its rows mean."""


def _count_keys(entries: Entries, number: int) -> str:
    """Return a number of legacy keys in words: one is that of an entry, unless entries can have several objects."""
    if entries.names_folders:
        return count(number, "legacy folder", "legacy folders")
    if not entries.has_places and not entries.computes_objects:
        return count(number, "legacy entry", "legacy entries")
    return count(number, "legacy object", "legacy objects")


def read_column_length(column_type: str) -> int | None:
    """Return how many characters a column, or an element of its arrays, takes at most; None: no limit."""
    found = re.fullmatch(r"character(?: varying)?\((\d+)\)(?:\[\])?", column_type)
    return int(found[1]) if found else None
