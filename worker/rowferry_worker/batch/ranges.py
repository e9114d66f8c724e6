"""Steps 2 to 4 for a range of objects without rows: list it anew, work on each object, and see what vanished."""

from collections.abc import Callable, Mapping, Sequence

from rowferry.batch import Entry, EntryResult, Outcome, Performed
from rowferry.errors import ObjectRejected
from rowferry.keys import ObjectKeys, map_object
from rowferry.plan import BucketPrefix, ObjectPrefix, SideName
from rowferry.s3.listings.keys import ListedKeys
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.objects import Judge, MappedRow
from rowferry_worker.batch.sources.listing import RANGE_PAGES, choose_most, find_prefix, list_keys
from rowferry_worker.scheduling.copy_run import ObjectResult

Work = Callable[[Sequence[ObjectKeys]], Mapping[str, ObjectResult]]
"""Copies or verifies objects, and returns by legacy key how each ended."""


def is_listed(context: BatchContext) -> bool:
    """Return whether the batch is of objects without rows."""
    return "objects" in context.batch.payload


def run_range(context: BatchContext, entries: Sequence[Entry], work: Work) -> Performed:
    """Work on the objects of the batch's range, which are its entries.

    Objects that the application has added since are among them, up to a quarter more than a batch has; what is beyond
    them goes back as a batch of its own.
    """
    prefix = find_prefix(context)
    most = choose_most(context)
    rows = [map_row(entry, prefix) for entry in entries[:most]]
    by_key = work([keys for row in rows for keys in row.objects if isinstance(keys, ObjectKeys)])
    side = context.queue.spec.form or context.batch.payload.get("side", "legacy")
    judge = Judge(by_key, side, keys_of="legacy")
    started, rest = judge.split_started(rows)
    return Performed(look_again(context, [judge.judge(row) for row in started]), [*rest, *entries[most:]])


def map_row(entry: Entry, prefix: ObjectPrefix | BucketPrefix) -> MappedRow:
    """Return the object's keys on both sides, or why it has none; an object of one bucket alone has its own twice."""
    if isinstance(prefix, BucketPrefix):
        return MappedRow(entry, (ObjectKeys(entry.key, entry.key),))
    try:
        return MappedRow(entry, (map_object(entry.key, prefix),))
    except ValueError as error:
        return MappedRow(entry, fault=ObjectRejected("KeyCannotBeMapped", str(error)))


def look_again(context: BatchContext, results: list[EntryResult]) -> list[EntryResult]:
    """Return the results, but for missing objects that are no longer listed: nothing points at them, so none is owed.

    One that is still listed stays missing: the server names a key that it does not know.
    """
    if not any(result.outcome is Outcome.MISSING for result in results):
        return results
    listed = list_keys(context, most_keys=4 * choose_most(context), is_enough=lambda page: page > RANGE_PAGES)
    side = context.batch.payload.get("side", "legacy")
    return [_excuse(result, listed, side) for result in results]


def _excuse(result: EntryResult, listed: ListedKeys, side: SideName) -> EntryResult:
    key = result.entry.key
    is_seen = listed.next is None or key < listed.next
    if result.outcome is not Outcome.MISSING or key in listed.keys or not is_seen:
        return result
    words = f"the {side} object was deleted after it was listed"
    return EntryResult(result.entry, Outcome.DELETED, reason="object deleted", error=words)
