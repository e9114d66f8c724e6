"""What a batch of `inspect` does: stream its objects through a computation, then write what was found."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.keys import ObjectKeys
from rowferry.plan import BucketPrefix, SideName
from rowferry_queues.inspect.allowed import load_function
from rowferry_queues.inspect.reading import ReadSettings, inspect_object
from rowferry_queues.inspect.spec import InspectSettings
from rowferry_queues.inspect.writing import write_facts
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.objects import Judge, MappedRow, find_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.sources import updates_table
from rowferry_worker.batch.sources.listing import find_prefix
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import log_copy
from rowferry_worker.scheduling.scheduler import ObjectResult


def perform(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Inspect the objects of entries, and write the facts; return one result for each of them."""
    settings = cast("InspectSettings", context.settings)
    if is_listed(context):
        return inspect_listed(context, settings, entries)
    if not updates_table(context.batch.payload):
        rows = [MappedRow(entry, (ObjectKeys(entry.key, entry.key),)) for entry in entries]
        return inspect_rows(context, settings, rows)
    queries = find_queries(context)
    rows = find_rows(entries, queries.entries, settings.side)
    return look_again(context, queries, inspect_rows(context, settings, rows), settings.side)


def inspect_rows(context: BatchContext, settings: InspectSettings, rows: Sequence[MappedRow]) -> list[EntryResult]:
    """Inspect the objects of rows, or of items, that name their keys."""
    keys = [key for row in rows for key in row.list_keys(settings.side)]
    by_key = run_inspections(context, settings, settings.side, keys)
    started = Judge(by_key, settings.side).choose_started(context, rows)
    return write_facts(context, settings, started, by_key)


def inspect_listed(context: BatchContext, settings: InspectSettings, entries: Sequence[Entry]) -> list[EntryResult]:
    """Inspect objects that no row names; of [[objects]], those of the side that the settings name."""
    prefix = find_prefix(context)
    side = prefix.side if isinstance(prefix, BucketPrefix) else settings.side
    key_of: dict[str, str] = {}
    found: dict[str, ObjectResult] = {}

    def work(objects: Sequence[ObjectKeys]) -> Mapping[str, ObjectResult]:
        key_of.update({keys.legacy: keys.production if side == "production" else keys.legacy for keys in objects})
        found.update(run_inspections(context, settings, side, key_of.values()))
        return {listed: found[key] for listed, key in key_of.items()}

    results = run_range(context, entries, work)
    read = [each.entry for each in results if each.outcome is Outcome.MIGRATED]
    others = [each for each in results if each.outcome is not Outcome.MIGRATED]
    rows = [MappedRow(entry, (ObjectKeys(key_of[entry.key], key_of[entry.key]),)) for entry in read]
    return others + write_facts(context, settings, rows, found)


def run_inspections(
    context: BatchContext, settings: InspectSettings, side: SideName, keys: Iterable[str]
) -> dict[str, ObjectResult]:
    """Inspect each object once, many at once, and return what was found by key."""
    s3, function = context.object_requests(), None if settings.function is None else load_function(settings.function)
    reading = ReadSettings.of(settings, context.migration.bodies, function)
    return run_copies(context, lambda key: log_copy(inspect_object(s3, reading, side, key), key, key), keys)
