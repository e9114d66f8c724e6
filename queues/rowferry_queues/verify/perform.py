"""What a batch of `verify` does: hold production objects against their legacy objects; repair them where asked to."""

from collections.abc import Iterable, Sequence

from rowferry.batch import Entry, EntryResult
from rowferry.keys import ObjectKeys, StandingObject
from rowferry_queues.verify.object import ObjectNowhere, VerifyOptions, verify_object
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import choose_options, run_copies
from rowferry_worker.batch.objects import Judge, find_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.second_look import look_at_sources
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import log_copy
from rowferry_worker.scheduling.scheduler import ObjectResult


def perform(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Verify the objects of production entries; return one result for each of them."""
    if is_listed(context):
        return run_range(context, entries, lambda objects: verify_listed(context, objects))
    queries = find_queries(context)
    rows = find_rows(entries, queries.entries, "production")
    found = verify_objects(context, [row.objects for row in rows], stays=queries.entries.rows == "stay")
    judge = Judge(found, "production", excused=ObjectNowhere)
    results = [judge.judge(row) for row in judge.choose_started(context, rows)]
    return look_again(context, queries, results, "production")


def verify_listed(context: BatchContext, objects: Sequence[ObjectKeys]) -> dict[str, ObjectResult]:
    """Verify the copies of listed objects, and return by legacy key what was found."""
    found = verify_objects(context, [(StandingObject(keys.production, keys.legacy),) for keys in objects], stays=True)
    return {keys.legacy: found[keys.production] for keys in objects}


def verify_objects(
    context: BatchContext, objects: Iterable[Iterable[ObjectKeys | StandingObject]], *, stays: bool
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
