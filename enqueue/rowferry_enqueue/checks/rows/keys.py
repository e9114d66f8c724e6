"""Checks keys: every legacy key becomes a usable production key, and no two become the same one."""

import re
from collections.abc import Iterator
from functools import partial

import psycopg
from psycopg import sql

from rowferry.db.connection import Connection, fetch_one
from rowferry.db.entries import EntryQueries
from rowferry.db.forms import read_text
from rowferry.db.statements import statement
from rowferry.formatting import count
from rowferry.keys import MAX_KEY_BYTES, leaves_signed
from rowferry.plan import Entries
from rowferry.progress import OnProgress
from rowferry_enqueue.checks.finding import Finding, fine, note, problem, quote_key
from rowferry_enqueue.checks.rows.clashes import check_clashes, find_clashing_pairs
from rowferry_enqueue.checks.rows.expressions import refuse
from rowferry_enqueue.checks.rows.scans import scan

_PREFIXES = "correct those keys, or `from` and `to` in the plan"
_FAULTS = {
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
_TEXT_FAULTS = {
    "empty text": "would become empty",
    "legacy text": "would still have the legacy form",
    "wide text": "would be too long for the column",
}
"""What would become of a text beside computed keys."""


def check_keys(connection: Connection, usable: list[EntryQueries], on_progress: OnProgress) -> Iterator[Finding]:
    """Yield the findings; one scan a table, and one for each pair of tables whose keys could clash.

    Removes from `usable` the tables that could not be scanned.
    """
    for queries in list(usable):
        on_progress(f"mapping the legacy keys of {queries.entries.label}")
        yield from scan(connection, partial(_check_values, usable, connection, queries), queries, usable=usable)
    pairs = find_clashing_pairs(usable)
    clashes: list[Finding] = []
    for pair in pairs:
        on_progress(f"comparing the keys of {pair[0].entries.label} and {pair[1].entries.label}")
        clashes.extend(scan(connection, partial(check_clashes, connection, pair), *pair))
    yield from clashes
    if usable and not clashes:
        yield fine("no two legacy keys become the same production key")


def _check_values(usable: list[EntryQueries], connection: Connection, queries: EntryQueries) -> list[Finding]:
    """Return the findings about one table; if the SQL of the plan fails at a row's values, say so and remove it."""
    try:
        with connection.transaction():
            return _check_faults(connection, queries)
    except psycopg.DataError as error:
        usable.remove(queries)
        return [refuse(queries.entries, error)]


def _check_faults(connection: Connection, queries: EntryQueries) -> list[Finding]:
    entries = queries.entries
    query = queries.compose(
        "key_faults",
        legacy_keys=queries.compose("legacy_keys"),
        becomes_production=statement("is_production", text=sql.SQL("e.production_text")),
    )
    length = read_column_length(queries.found.key_base_type or "")
    parameters = queries.parameters(max_bytes=MAX_KEY_BYTES, column_length=length)
    counted = {row["fault"]: row for row in connection.execute(query, parameters)}
    usable: int = counted[None]["keys"] if None in counted else 0
    usable_keys = f"{entries.label}: {_count_keys(entries, usable)} with usable production keys"
    findings = [fine(usable_keys) if usable else note(usable_keys)]
    for fault, (description, remedy) in _FAULTS.items():
        if fault in counted:
            subject, example = _count_keys(entries, counted[fault]["keys"]), quote_key(counted[fault]["example"])
            findings.append(problem(f"{entries.label}: {subject} {description}, for example {example}", remedy))
    findings += _find_text_faults(connection, queries, length)
    findings += _find_presigned(connection, queries)
    return findings + _find_rows_without_objects(connection, queries, has_entries=bool(counted))


def _find_text_faults(connection: Connection, queries: EntryQueries, length: int | None) -> Iterator[Finding]:
    """Yield what would stop a worker at texts that name no object."""
    entries = queries.entries
    if entries.objects is None or not entries.has_two_texts:
        return
    query = queries.compose(
        "text_faults", becomes_production=statement("is_production", text=sql.SQL("o.production_text"))
    )
    for row in connection.execute(query, queries.parameters(column_length=length)):
        texts, example = count(row["texts"], "text", "texts"), quote_key(row["example"])
        what = f"{entries.label}: {texts} {_TEXT_FAULTS[row['fault']]}, for example {example}"
        yield problem(what, "correct those texts, or `from` and `to` in the plan")


def _find_presigned(connection: Connection, queries: EntryQueries) -> Iterator[Finding]:
    """Yield how many rows hold presigned URLs, which no worker rewrites."""
    entries = queries.entries
    if not leaves_signed(entries):
        return
    query = queries.compose(
        "count_presigned", is_presigned=statement("is_presigned", text=read_text(entries, queries.found))
    )
    row = fetch_one(connection, query, queries.parameters())
    if row["rows"]:
        rows = count(row["rows"], "row holds a presigned URL", "rows hold presigned URLs")
        what = f"{rows}, which are valid for one bucket and stay as they are"
        example = f"for example {entries.id_words} {row['example']}"
        yield note(f"{entries.label}: {what}, {example}", "let the application sign new ones")


def _find_rows_without_objects(connection: Connection, queries: EntryQueries, *, has_entries: bool) -> list[Finding]:
    """Note the rows that an expression leaves out by yielding nothing, meant or not; a problem where it is all."""
    entries = queries.entries
    if entries.objects is None:
        return []
    row = fetch_one(connection, queries.compose("rows_without_objects"), queries.parameters())
    if not row["rows"]:
        return []
    rows = count(row["rows"], "row has a legacy text and is no entry", "rows have legacy texts and are no entries")
    example = f"for example {entries.id_words} {row['example']}"
    what = f"{entries.label}: {rows}, since `objects` yields null or nothing, {example}"
    if row["rows_with_optional"] and not has_entries:
        what = (
            f"{entries.label}: `objects` yields nothing for any row, so no row is an entry and no object of `optional` "
            "is copied"
        )
        return [problem(what, "name in `objects` what each row must have, or copy these objects by [[objects]]")]
    if row["rows_with_optional"]:
        what += f"; objects of `optional` are not copied for {row['rows_with_optional']:,} of them"
    return [note(what, "wrap columns that may be null in coalesce(), unless these rows have no object")]


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
