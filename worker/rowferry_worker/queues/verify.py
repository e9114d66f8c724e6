"""The queue `verify`: hold each production entry's object against its legacy object, and repair it where asked to."""

from collections.abc import Mapping

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.entries import EntryQueries
from rowferry.errors import NotStarted, ObjectNotFound
from rowferry.keys import legacy_key
from rowferry.plan import Entries
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.entries import Form, find_queries, read_range
from rowferry_worker.batch.rows import find_excused
from rowferry_worker.objects.copy import CopyResult, log_copy
from rowferry_worker.objects.scheduler import ObjectResult
from rowferry_worker.objects.verify import ObjectsDiffer, VerifyOptions, verify_object

FORM: Form = "production"
UPDATES_ROWS = False


def perform(context: BatchContext) -> list[EntryResult]:
    """Verify the objects of the production entries of the batch's range; return one result for each of them."""
    queries = find_queries(context)
    entries = read_range(context, FORM, queries)
    by_key = verify_objects(context, [entry.key for entry in entries], queries.entries)
    started = context.leave_unstarted(entries, lambda entry: not isinstance(by_key[entry.key], NotStarted))
    return look_again(context, queries, judge_entries(started, by_key))


def read(context: BatchContext) -> list[Entry]:
    """Return the entries of the batch's range that are production, in the order of their ids."""
    return read_range(context, FORM)


def verify_objects(context: BatchContext, keys: list[str], plan: Entries) -> dict[str, ObjectResult]:
    """Verify the object of each production key, many at once, and return what was found."""
    s3, copy_options, payload = context.object_requests(), context.migration.copy_options("fail"), context.batch.payload
    options = VerifyOptions(payload.get("deep", False), payload.get("repair", "nothing"))
    return run_copies(
        context,
        lambda key: log_copy(verify_object(s3, copy_options, find_legacy_key(key, plan), key, options), key, key),
        keys,
    )


def find_legacy_key(key: str, plan: Entries) -> str | None:
    """Return the legacy key that a production key comes from; None when no legacy key can become it."""
    try:
        return legacy_key(key, plan)
    except ValueError:
        return None


def judge_entries(entries: list[Entry], by_key: Mapping[str, ObjectResult]) -> list[EntryResult]:
    """Return the results of the entries. Several may point at one object: it was repaired for the first of them."""
    results: list[EntryResult] = []
    repaired: set[str] = set()
    for entry in entries:
        result = by_key[entry.key]
        if not isinstance(result, CopyResult):
            results.append(EntryResult.from_error(entry, result, _outcome_of(result)))
        elif entry.key in repaired:
            results.append(EntryResult(entry, Outcome.KEPT))
        else:
            results.append(EntryResult(entry, result.outcome, result.size_bytes))
            repaired.add(entry.key)
    return results


def look_again(context: BatchContext, queries: EntryQueries, results: list[EntryResult]) -> list[EntryResult]:
    """Return the results, but for rows that no longer hold the key: what became of its object is not theirs."""
    unsettled = [result.entry for result in results if not result.outcome.settled]
    excused = find_excused(context.connection, queries, unsettled)
    return [excused.get(result.entry.id, result) for result in results]


def _outcome_of(error: ObjectResult) -> Outcome:
    if isinstance(error, ObjectNotFound):
        return Outcome.MISSING
    return Outcome.CONFLICT if isinstance(error, ObjectsDiffer) else Outcome.FAILED
