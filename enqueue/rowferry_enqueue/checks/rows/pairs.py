"""Checks of two [[entries]] whose keys may collide: which pairs, one query over both, and its sentence."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any, Literal, LiteralString, cast

from psycopg import sql

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.errors import UsageError
from rowferry.formatting import count
from rowferry.keys import Form
from rowferry.plan import Entries, Plan
from rowferry.progress import OnProgress
from rowferry_enqueue.checks.finding import Finding, problem, quote_key
from rowferry_enqueue.checks.rows.scans import Row, scan

Pair = tuple[EntryQueries, EntryQueries]
"""Two [[entries]] whose keys could get into each other's way, by their prefixes."""


def read_meeting_keys(
    connection: Connection,
    pair: Pair,
    key: Literal["legacy_key", "production_key"],
    *,
    form: Form = "legacy",
    of_others: bool = False,
    most: int = 1,
) -> list[Row]:
    """Return legacy keys of the first table whose production keys are a `key` of entries of a form of the second.

    `of_others`: only where the legacy keys differ; `most`: how many are returned. Each row has the `total`.
    """
    one, other = pair
    query = one.compose(
        "meeting_keys",
        legacy_keys=one.compose_keys("legacy"),
        other_keys=rename_parameters(other.compose_keys(form)),
        other_key=sql.Identifier(key),
    )
    parameters = one.parameters(most=most, of_others=of_others, **other_parameters(other))
    with translated_errors():
        return connection.execute(query, parameters).fetchall()


def rename_parameters(query: sql.Composable) -> sql.SQL:
    """Return a part of a statement with parameters that begin with `other_`, as `other_parameters` names them."""
    text = query.as_string(None)
    renamed = re.sub(r"%%|%\((\w+)\)s", lambda match: f"%(other_{match[1]})s" if match[1] else "%%", text)
    return sql.SQL(cast("LiteralString", renamed))


def other_parameters(queries: EntryQueries) -> dict[str, Any]:
    return {f"other_{name}": value for name, value in queries.parameters().items()}


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


def check_clashes(connection: Connection, usable: Sequence[EntryQueries], on_progress: OnProgress) -> Iterator[Finding]:
    """Yield different legacy keys that become one production key, by one join for each pair where that may be."""
    for pair in combinations(usable, 2):
        if may_clash(pair[0].entries, pair[1].entries):
            on_progress(f"comparing the keys of {pair[0].entries.label} and {pair[1].entries.label}")
            yield from scan(connection, partial(_find_clash, connection, pair), *pair)


def _find_clash(connection: Connection, pair: Pair) -> list[Finding]:
    rows = read_meeting_keys(connection, pair, "production_key", of_others=True)
    return [
        problem(
            f"different legacy keys of {pair[0].entries.label} and {pair[1].entries.label} become the same production "
            f"key, {count(row['total'], 'pair', 'pairs')} of them, for example {quote_key(row['legacy_key'])} and "
            f"{quote_key(row['other_legacy_key'])} both become {quote_key(row['production_key'])}",
            "give one of them another `to` in the plan",
        )
        for row in rows
    ]


_APART = "give the copies keys of their own by `production_object` or `to`, or name another production bucket"


def check_one_bucket(
    connection: Connection, plan: Plan, usable: Sequence[EntryQueries], on_progress: OnProgress
) -> Iterator[Finding]:
    """Yield, where both sides are one bucket, copies that would lie on objects that are to be copied themselves."""
    for pair in _find_overlapping(plan, usable):
        on_progress(f"looking for legacy objects in the way of {pair[0].entries.label}")
        yield from scan(connection, partial(_find_overlap, connection, pair), *pair)


def refuse_overwritten_objects(connection: Connection, plan: Plan, chosen: Sequence[Entries]) -> None:
    """Raise UsageError where copies that replace what is there would replace legacy objects."""
    for pair in _find_overlapping(plan, [EntryQueries.of(connection, entries) for entries in plan.entries]):
        for found in _find_overlap(connection, pair) if pair[0].entries in chosen else ():
            raise UsageError(f"No object of a legacy row may be replaced: {found.what}; {found.remedy}.")


def _find_overlapping(plan: Plan, queries: Sequence[EntryQueries]) -> Iterator[Pair]:
    for one, other in product(queries, repeat=2) if plan.is_one_bucket else ():
        # The text of a plain entry is its key, and none has both forms.
        is_told_apart = one is other and one.entries.is_plain
        if not is_told_apart and _overlap(one.entries.production_object_prefix, other.entries.legacy_object_prefix):
            yield one, other


def _find_overlap(connection: Connection, pair: Pair) -> list[Finding]:
    rows = read_meeting_keys(connection, pair, "legacy_key")
    return [
        problem(
            f"both sides are one bucket, and {count(row['total'], 'copy', 'copies')} of objects of "
            f"{pair[0].entries.label} would lie on legacy objects of {pair[1].entries.label}, for example that of "
            f"{quote_key(row['legacy_key'])} on {quote_key(row['production_key'])}",
            _APART,
        )
        for row in rows
    ]


def find_colliding_pairs(queries: Sequence[EntryQueries]) -> list[Pair]:
    """Return the pairs where a legacy key of the first could become a production key that the second has already."""
    # Objects of folders are compared by a worker: their keys are in no row.
    named = [each for each in queries if not each.entries.names_folders]
    moving = [each for each in named if each.entries.rows == "move"]
    prefixes = ((pair, [each.entries.production_object_prefix for each in pair]) for pair in product(named, moving))
    return [pair for pair, (one, other) in prefixes if _overlap(one, other)]


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
