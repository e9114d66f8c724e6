"""Checks clashes: keys of two [[entries]] that get into each other's way; which pairs may, and statements over both."""

import re
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, LiteralString, cast

from psycopg import sql

from rowferry.db.connection import Connection
from rowferry.db.entries import EntryQueries
from rowferry.formatting import count
from rowferry.plan import Entries
from rowferry_enqueue.checks.finding import Finding, problem, quote_key

Pair = tuple[EntryQueries, EntryQueries]
"""Two [[entries]] whose keys could get into each other's way, by their prefixes."""


def may_clash(one: Entries, other: Entries) -> bool:
    """Return whether two different legacy keys, one of each, could become the same production key.

    Keys of one prefix never do, since they keep what follows it. Keys of two prefixes do where one production prefix
    begins with the other, unless the legacy prefixes differ by the same end.
    """
    if len(one.production_object_prefix) < len(other.production_object_prefix):
        one, other = other, one
    longer, shorter = one.production_object_prefix, other.production_object_prefix
    return (
        longer.startswith(shorter) and one.legacy_object_prefix != other.legacy_object_prefix + longer[len(shorter) :]
    )


def find_clashing_pairs(queries: Sequence[EntryQueries]) -> list[Pair]:
    return [(one, other) for one, other in combinations(queries, 2) if may_clash(one.entries, other.entries)]


def find_colliding_pairs(queries: Sequence[EntryQueries]) -> list[Pair]:
    """Return the pairs where a legacy key of the first could become a production key that the second has already."""
    # Objects of folders are compared by a worker: their keys are in no row.
    named = [each for each in queries if not each.entries.names_folders]
    pairs = product(named, [each for each in named if each.entries.rows == "move"])
    return [(one, other) for one, other in pairs if _overlap(one.entries, other.entries)]


def _overlap(one: Entries, other: Entries) -> bool:
    prefixes = (one.production_object_prefix, other.production_object_prefix)
    return prefixes[0].startswith(prefixes[1]) or prefixes[1].startswith(prefixes[0])


def compose_other(queries: EntryQueries, name: str) -> sql.SQL:
    """Return a statement over the second table of a pair; its parameters begin with `other_`."""
    return rename_parameters(queries.compose(name))


def rename_parameters(query: sql.Composable) -> sql.SQL:
    """Return a part of a statement with parameters that begin with `other_`, as `other_parameters` names them."""
    text = query.as_string(None)
    renamed = re.sub(r"%%|%\((\w+)\)s", lambda match: f"%(other_{match[1]})s" if match[1] else "%%", text)
    return sql.SQL(cast("LiteralString", renamed))


def other_parameters(queries: EntryQueries) -> dict[str, Any]:
    return {f"other_{name}": value for name, value in queries.parameters().items()}


def check_clashes(connection: Connection, pair: Pair) -> list[Finding]:
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
