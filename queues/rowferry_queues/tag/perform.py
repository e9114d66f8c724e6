"""What a batch of `tag` does: read the tags of each production object, and write them where something changes."""

from collections.abc import Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from msgspec import field

from rowferry.batch import Entry, EntryResult
from rowferry.errors import MigrationFault
from rowferry.keys import ObjectKeys
from rowferry_queues.tag.merge import TagConflict, combine, refuse_unfit
from rowferry_queues.tag.object import TagWrites, tag_object
from rowferry_queues.tag.spec import TagSettings
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.objects import Judge, MappedRow, find_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import log_copy
from rowferry_worker.migration import MigrationContext
from rowferry_worker.scheduling.scheduler import ObjectResult

_writes: WeakKeyDictionary[MigrationContext, TagWrites] = WeakKeyDictionary()


def perform(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Tag the objects of production entries; return one result for each of them."""
    settings = cast("TagSettings", context.settings)
    if is_listed(context):
        refuse_without_rows(context, settings)
        tags = settings.choose_tags(Entry("", ""))
        return run_range(context, entries, lambda objects: tag_listed(context, objects, tags))
    queries = find_queries(context)
    rows = [choose_tags(row, settings) for row in find_rows(entries, queries.entries, "production")]
    judge = Judge(tag_objects(context, rows), "production")
    results = [judge.judge(row) for row in judge.choose_started(context, rows)]
    return look_again(context, queries, results, "production")


def refuse_without_rows(context: BatchContext, settings: TagSettings) -> None:
    """Raise MigrationFault where only a row could tell which tags an object gets."""
    if settings.reads_rows:
        words = f"{context.batch.payload['entries']} has no rows: name the [[entries]] that are meant in `of`"
        raise MigrationFault(f"{words} of [queue.{context.queue.spec.name}]")


class TaggedRow(MappedRow, frozen=True, gc=False):
    """An entry, its objects, and the tags that they are to get."""

    tags: Mapping[str, str] = field(default_factory=dict[str, str])


def choose_tags(row: MappedRow, settings: TagSettings) -> TaggedRow:
    """Return a row with its tags; without any it has no objects."""
    tags = settings.choose_tags(row.entry)
    try:
        refuse_unfit(tags)
    except TagConflict as conflict:
        return TaggedRow(row.entry, fault=conflict)
    return TaggedRow(row.entry, row.objects, fault=row.fault, tags=tags) if tags else TaggedRow(row.entry)


def tag_objects(context: BatchContext, rows: Sequence[TaggedRow]) -> dict[str, ObjectResult]:
    """Tag the object of each production key once, many at once, and return how each ended."""
    wanted: dict[str, dict[str, str]] = {}
    refused: dict[str, ObjectResult] = {}
    for row in rows:
        for each in row.objects:
            try:
                wanted[each.production] = combine(wanted.get(each.production, {}), row.tags)
            except TagConflict as conflict:
                refused[each.production] = conflict
    return run_tagging(context, {key: tags for key, tags in wanted.items() if key not in refused}) | refused


def tag_listed(
    context: BatchContext, objects: Sequence[ObjectKeys], tags: Mapping[str, str]
) -> dict[str, ObjectResult]:
    """Tag listed objects, and return by the listed key how each ended."""
    by_key = run_tagging(context, {keys.production: tags for keys in objects})
    return {keys.legacy: by_key[keys.production] for keys in objects}


def run_tagging(context: BatchContext, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, ObjectResult]:
    """Give the objects of these production keys their tags."""
    s3, writes = context.object_requests(), _writes.setdefault(context.migration, TagWrites())
    return run_copies(context, lambda key: log_copy(tag_object(s3, writes, key, wanted[key]), key, key), wanted)
