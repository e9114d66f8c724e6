"""The check of the keys: every legacy key becomes a usable production key, and no two become the same."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from psycopg import sql

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.entries import EntrySql, describe
from rowferry.db.statements import statement
from rowferry.errors import DatabaseUnavailable, RowferryError
from rowferry.formatting import count
from rowferry.keys import MAX_KEY_BYTES
from rowferry.s3.listing import OnProgress
from rowferry_enqueue.finding import Finding, fine, note, problem
from rowferry_enqueue.key_pairs import Pair, compose_other, find_clashing_pairs, other_parameters

SHOWN_CHARACTERS = 60
"""How much of a key is quoted."""

_WORDS_OF_FAULT = {
    "empty": "would have an empty production key",
    "too long": f"would have a production key of more than {MAX_KEY_BYTES:,} bytes, the most that S3 takes",
    "still legacy": "would have a production key that still has the legacy form",
    "too wide": "would have a production key that is too long for the column",
}


def check_keys(connection: Connection, usable: Sequence[EntrySql], on_progress: OnProgress) -> Iterator[Finding]:
    """Yield what the actual legacy keys show; one scan a table, and one a pair of tables that could clash."""
    for entry_sql in usable:
        on_progress(f"mapping the legacy keys of {entry_sql.entries.label}")
        yield from _guarded(_check_faults, connection, entry_sql)
    pairs = find_clashing_pairs(usable)
    clashes: list[Finding] = []
    for pair in pairs:
        on_progress(f"comparing the keys of {pair[0].entries.label} and {pair[1].entries.label}")
        clashes.extend(_guarded(_check_clashes, connection, pair))
    yield from clashes
    if usable and not clashes:
        yield fine("no two legacy keys become the same production key")


def _check_faults(connection: Connection, entry_sql: EntrySql) -> list[Finding]:
    entries = entry_sql.entries
    query = entry_sql.compose(
        "key_faults",
        legacy_keys=entry_sql.compose("legacy_keys"),
        becomes_production=statement("is_production", key=sql.Identifier("production_key")),
    )
    length = read_column_length(describe(connection, entries).key_type or "")
    parameters = entry_sql.parameters(max_bytes=MAX_KEY_BYTES, column_length=length)
    counted = {row["fault"]: row for row in connection.execute(query, parameters)}
    usable: int = counted[None]["entries"] if None in counted else 0
    say = fine if usable else note
    findings = [say(f"{entries.label}: {count_legacy(usable)} with usable production keys")]
    for fault, words in _WORDS_OF_FAULT.items():
        if fault in counted:
            subject, example = count_legacy(counted[fault]["entries"]), quote_key(counted[fault]["example"])
            what = f"{entries.label}: {subject} {words}, for example {example}"
            findings.append(problem(what, "correct those keys, or `from` and `to` in the plan"))
    return findings


def _check_clashes(connection: Connection, pair: Pair) -> list[Finding]:
    one, other = pair
    query = one.compose(
        "key_clashes", legacy_keys=one.compose("legacy_keys"), other_legacy_keys=compose_other(other, "legacy_keys")
    )
    row = connection.execute(query, one.parameters(**other_parameters(other))).fetchone()
    if row is None:
        return []
    pairs, example, other_example = count(row["total"], "pair", "pairs"), row["legacy_key"], row["other_legacy_key"]
    what = (
        f"different legacy keys of {one.entries.label} and {other.entries.label} become the same production key, "
        f"{pairs} of them, for example {quote_key(example)} and {quote_key(other_example)} "
        f"both become {quote_key(row['production_key'])}"
    )
    return [problem(what, "give one of them another `to` in the plan")]


def _guarded(check: Any, connection: Connection, subject: Any) -> list[Finding]:
    """Return what a check finds; an error of the server, but for a lost connection, is a problem like others."""
    try:
        with translated_errors(), connection.transaction():
            return check(connection, subject)
    except DatabaseUnavailable:
        raise
    except RowferryError as error:
        return [problem(error)]


def count_legacy(number: int) -> str:
    """Return `1 legacy entry`, `1,234 legacy entries`."""
    return count(number, "legacy entry", "legacy entries")


def read_column_length(column_type: str) -> int | None:
    """Return the most characters that a column takes; None where nothing limits them."""
    found = re.fullmatch(r"character(?: varying)?\((\d+)\)", column_type)
    return int(found[1]) if found else None


def quote_key(key: str) -> str:
    """Return a key in quotes, its middle left out where it is long."""
    half = SHOWN_CHARACTERS // 2
    return repr(key if len(key) <= SHOWN_CHARACTERS else f"{key[:half]}…{key[-half:]}")
