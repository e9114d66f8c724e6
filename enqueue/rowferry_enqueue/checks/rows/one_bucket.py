"""Checks, where both sides are one bucket, that no copy would lie on an object that is to be copied itself."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.errors import UsageError
from rowferry.formatting import count
from rowferry.plan import Entries, Plan
from rowferry.progress import OnProgress
from rowferry_enqueue.checks.finding import Finding, problem, quote_key
from rowferry_enqueue.checks.rows.clashes import Pair, compose_other, other_parameters
from rowferry_enqueue.checks.rows.scans import scan

_REMEDY = "give the copies keys of their own by `production_object` or `to`, or name another production bucket"


def check_one_bucket(
    connection: Connection, plan: Plan, usable: Sequence[EntryQueries], on_progress: OnProgress
) -> Iterator[Finding]:
    """Yield legacy objects whose keys others are to have; one join for each pair of tables where that may be."""
    for pair in _find_pairs(plan, usable):
        on_progress(f"looking for legacy objects in the way of {pair[0].entries.label}")
        yield from scan(connection, partial(_check_overlap, connection, pair), *pair)


def _check_overlap(connection: Connection, pair: Pair) -> list[Finding]:
    what = _find_overlap(connection, pair)
    return [problem(what, _REMEDY)] if what else []


def refuse_overwritten_objects(connection: Connection, plan: Plan, chosen: Sequence[Entries]) -> None:
    """Raise UsageError where copies that replace what is there would replace legacy objects."""
    if plan.is_one_bucket:
        queries = [EntryQueries.of(connection, entries) for entries in plan.entries]
        for one, other in _find_pairs(plan, queries):
            if one.entries in chosen and (what := _find_overlap(connection, (one, other))):
                raise UsageError(f"No object of a legacy row may be replaced: {what}; {_REMEDY}.")


def _find_pairs(plan: Plan, queries: Sequence[EntryQueries]) -> Iterator[Pair]:
    if not plan.is_one_bucket:
        return
    for one, other in product(queries, repeat=2):
        prefixes = (one.entries.production_object_prefix, other.entries.legacy_object_prefix)
        # The text of a plain entry is its key, and none has both forms.
        is_told_apart = one is other and one.entries.is_plain
        if not is_told_apart and (prefixes[0].startswith(prefixes[1]) or prefixes[1].startswith(prefixes[0])):
            yield one, other


def _find_overlap(connection: Connection, pair: Pair) -> str | None:
    """Return what is wrong, in words; None: nothing."""
    one, other = pair
    query = one.compose(
        "key_overlaps", legacy_keys=one.compose("legacy_keys"), other_legacy_keys=compose_other(other, "legacy_keys")
    )
    with translated_errors():
        row = connection.execute(query, one.parameters(**other_parameters(other))).fetchone()
    if row is None:
        return None
    copies, example = count(row["total"], "copy", "copies"), quote_key(row["legacy_key"])
    return (
        f"both sides are one bucket, and {copies} of objects of {one.entries.label} would lie on legacy objects of "
        f"{other.entries.label}, for example that of {example} on {quote_key(row['production_key'])}"
    )
