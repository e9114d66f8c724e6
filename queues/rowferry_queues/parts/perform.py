"""What a batch of `parts` does: begin and complete the uploads of large objects, or send some parts of one.

A batch of objects begins the uploads of the large ones, puts their parts in the queue, and completes what is sent. Its
entries stay in the batch until their objects stand: what other batches are at work on is looked at again after a while,
or at once when the last part is recorded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rowferry.batch import Entry, Performed
from rowferry.db.connection import call
from rowferry.errors import Awaited, ObjectRejected
from rowferry.formatting import count, count_batches
from rowferry.keys import ObjectKeys
from rowferry_queues.parts.large_copy import SharedCopies, Wanted
from rowferry_queues.parts.send import send_parts
from rowferry_queues.parts.spec import PartsSettings
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import choose_options, run_copies
from rowferry_worker.batch.objects import Judge, MappedRow, list_objects, map_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.scheduling.copy_run import ObjectResult


def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Work on the large ones among the objects of the entries, or on parts. No row is updated."""
    if context.batch.is_of_parts:
        return send_parts(context, entries)
    if is_listed(context):
        ends: dict[str, ObjectResult] = {}

        def work(objects: Sequence[ObjectKeys]) -> Mapping[str, ObjectResult]:
            ends.update(copy_large(context, {each.legacy: each.production for each in objects}, stays=True))
            return ends

        return replace(run_range(context, entries, work), wait_for=list_awaited(ends))
    queries = find_queries(context)
    rows = map_rows(entries, queries.entries)
    if queries.entries.names_folders:  # the queue `migrate` copies what is in them, large or small
        rows = [MappedRow(row.entry, fault=row.fault) for row in rows]
    by_key = copy_large(context, list_objects(rows), stays=queries.entries.rows == "stay")
    judge = Judge(by_key)
    started, rest = judge.split_started(rows)
    results = look_again(context, queries, [judge.judge(row) for row in started], "legacy")
    return Performed(results, rest, wait_for=list_awaited(by_key))


def list_awaited(by_key: Mapping[str, ObjectResult]) -> list[str]:
    """Return the keys of objects that other batches are at work on; then the batch looks again later."""
    return [key for key, result in by_key.items() if isinstance(result, Awaited)]


def copy_large(context: BatchContext, objects: Mapping[str, str], *, stays: bool) -> dict[str, ObjectResult]:
    """Bring each object, legacy key to production key, a step further, and return by legacy key how that ended."""
    settings, s3, options = context.settings, context.object_requests(), choose_options(context, stays=stays)
    assert isinstance(settings, PartsSettings)
    production = options.copies.production
    listed = call(context.connection, "list_uploads", context.batch.id, production, [*objects.values()])
    begun = frozenset(row["key"] for row in listed)
    replaces_own = settings.replace == "own" or (settings.replace is None and stays)
    copies = SharedCopies(s3, options.large_objects.records, options, settings, replaces_own, begun)
    by_key = run_copies(context, lambda key: copies.advance(key, objects[key]), objects)
    for key, wanted in copies.wanted.items():
        by_key[key] = share_parts(context, production, wanted, settings.batch_parts)
    return by_key


def share_parts(context: BatchContext, production: str, wanted: Wanted, batch_parts: int) -> Awaited | ObjectRejected:
    """Put parts in the queue, unless they are there, and return what their object is to wait for."""
    (row,) = call(context.connection, "add_parts", context.batch.id, production, *wanted, batch_parts)
    if row["waiting"]:
        return Awaited("PartsLeft", f"{count(len(wanted[-1]), 'part', 'parts')} not sent yet")
    return ObjectRejected("PartsFailed", f"{count_batches(row['failed'])} of its parts in ERROR; requeue them as well")
