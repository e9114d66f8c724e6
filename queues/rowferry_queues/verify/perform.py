"""What a batch of `verify` does: hold production objects against their legacy objects; repair them where asked to."""

from collections.abc import Mapping, Sequence

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.errors import NotStarted, ObjectNotFound, ObjectRejected
from rowferry.keys import ObjectKeys, StandingObject, find_objects
from rowferry.plan import Entries
from rowferry_queues.verify.object import ObjectNowhere, ObjectsDiffer, VerifyOptions, verify_object
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.options import choose_options
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.second_look import look_at_sources
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import CopyResult, log_copy
from rowferry_worker.scheduling.scheduler import ObjectResult

Objects = tuple[StandingObject, ...] | ObjectRejected
"""Those of one entry, or why it names none."""


def perform(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Verify the objects of production entries; return one result for each of them."""
    if is_listed(context):
        return run_range(context, entries, lambda objects: verify_listed(context, objects))
    queries = find_queries(context)
    objects = {entry: list_objects(entry, queries.entries) for entry in entries}
    stays = queries.entries.rows == "stay"
    by_key = verify_objects(context, [each for each in objects.values() if isinstance(each, tuple)], stays=stays)
    started = context.leave_unstarted(entries, lambda entry: is_started(objects[entry], by_key))
    return look_again(context, queries, judge_entries(started, objects, by_key), "production")


def verify_listed(context: BatchContext, objects: Sequence[ObjectKeys]) -> dict[str, ObjectResult]:
    """Verify the copies of listed objects, and return by legacy key what was found."""
    found = verify_objects(context, [(StandingObject(keys.production, keys.legacy),) for keys in objects], stays=True)
    return {keys.legacy: found[keys.production] for keys in objects}


def list_objects(entry: Entry, plan: Entries) -> Objects:
    """Return the objects of an entry."""
    try:
        return tuple(find_objects(entry, plan))
    except ValueError as error:
        return ObjectRejected("KeyCannotBeMapped", str(error))


def verify_objects(
    context: BatchContext, objects: Sequence[tuple[StandingObject, ...]], *, stays: bool
) -> dict[str, ObjectResult]:
    """Verify the object of each production key once, many at once, and return what was found.

    `stays`: no row of these objects moves.
    """
    s3, payload = context.object_requests(), context.batch.payload
    copy_options = choose_options(context, stays=stays)
    options = VerifyOptions(payload.get("deep", False), payload.get("repair", "nothing"))
    # One that is optional for one row, and required for another, is required.
    listed = sorted((each for entry in objects for each in entry), key=lambda each: each.is_required)
    by_key = {each.production: each for each in listed}
    found = run_copies(
        context, lambda key: log_copy(verify_object(s3, copy_options, by_key[key], options), key, key), by_key
    )
    pairs = {key: (each.legacy, key) for key, each in by_key.items() if each.legacy is not None}
    return look_at_sources(context, copy_options, pairs, found, stays=True)


def is_started(objects: Objects, by_key: Mapping[str, ObjectResult]) -> bool:
    """Return whether all objects of an entry were begun within the time budget."""
    if isinstance(objects, ObjectRejected):
        return True
    return not any(isinstance(by_key[each.production], NotStarted) for each in objects)


def judge_entries(
    entries: list[Entry], objects: Mapping[Entry, Objects], by_key: Mapping[str, ObjectResult]
) -> list[EntryResult]:
    """Return the results of the entries. Several may point at one object: it was repaired for the first of them."""
    results: list[EntryResult] = []
    repaired: set[str] = set()
    for entry in entries:
        found = objects[entry]
        if isinstance(found, ObjectRejected):
            results.append(EntryResult.from_error(entry, found))
            continue
        results.append(_judge_entry(entry, found, by_key, repaired))
        repaired.update(each.production for each in found)
    return results


def _judge_entry(
    entry: Entry, objects: Sequence[StandingObject], by_key: Mapping[str, ObjectResult], repaired: set[str]
) -> EntryResult:
    """Return the worst of what was found of an entry's objects: failed, missing, different, repaired, equal."""
    errors = [
        (each.production, result)
        for each in objects
        if isinstance(result := by_key[each.production], Exception)
        and (each.is_required or not isinstance(result, ObjectNowhere))
    ]
    if errors:
        key, error = min(errors, key=lambda each: _ORDER.index(_outcome_of(each[1])))
        return EntryResult.from_error(entry, error, _outcome_of(error), key)
    first_seen = {each.production for each in objects} - repaired
    copies = [result for key in first_seen if isinstance(result := by_key[key], CopyResult)]
    was_repaired = any(result.outcome is Outcome.MIGRATED for result in copies)
    outcome = Outcome.MIGRATED if was_repaired else Outcome.KEPT
    return EntryResult(entry, outcome, sum(result.size_bytes for result in copies))


_ORDER = (Outcome.FAILED, Outcome.MISSING, Outcome.CONFLICT)


def _outcome_of(error: ObjectResult) -> Outcome:
    if isinstance(error, ObjectNotFound):
        return Outcome.MISSING
    return Outcome.CONFLICT if isinstance(error, ObjectsDiffer) else Outcome.FAILED
