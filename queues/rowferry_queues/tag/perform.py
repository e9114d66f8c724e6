"""What a batch of `tag` does: read the tags of each production object, and write them where something changes."""

from collections.abc import Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.errors import MigrationFault, NotStarted, ObjectError, ObjectNotFound, ObjectRejected
from rowferry.keys import ObjectKeys, StandingObject, find_objects
from rowferry.plan import Entries
from rowferry_queues.tag.merge import TagConflict, combine, refuse_unfit
from rowferry_queues.tag.object import TagWrites, tag_object
from rowferry_queues.tag.spec import TagSettings
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import CopyResult, log_copy
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
    rows = [TaggedRow(entry, settings, queries.entries) for entry in entries]
    by_key = tag_objects(context, [row for row in rows if row.fault is None])
    row_of = {row.entry: row for row in rows}
    started = context.leave_unstarted(entries, lambda entry: row_of[entry].is_started(by_key))
    return look_again(context, queries, judge_rows([row_of[entry] for entry in started], by_key), "production")


def refuse_without_rows(context: BatchContext, settings: TagSettings) -> None:
    """Raise MigrationFault where only a row could tell which tags an object gets."""
    if settings.reads_rows:
        words = f"{context.batch.payload['entries']} has no rows: name the [[entries]] that are meant in `of`"
        raise MigrationFault(f"{words} of [queue.{context.queue.spec.name}]")


class TaggedRow:
    """An entry, its objects, and the tags that they are to get."""

    __slots__ = ("entry", "fault", "objects", "tags")

    def __init__(self, entry: Entry, settings: TagSettings, plan: Entries) -> None:
        self.entry, self.tags = entry, settings.choose_tags(entry)
        self.objects: tuple[StandingObject, ...] = ()
        self.fault: ObjectError | None = None
        """Why nothing can be done for it."""
        try:
            refuse_unfit(self.tags)
            self.objects = tuple(find_objects(entry, plan)) if self.tags else ()
        except TagConflict as conflict:
            self.fault = conflict
        except ValueError as error:
            self.fault = ObjectRejected("KeyCannotBeMapped", str(error))

    def is_started(self, by_key: Mapping[str, ObjectResult]) -> bool:
        """Return whether all its objects were begun within the time budget."""
        return not any(isinstance(by_key[each.production], NotStarted) for each in self.objects)


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


def judge_rows(rows: Sequence[TaggedRow], by_key: Mapping[str, ObjectResult]) -> list[EntryResult]:
    """Return the results of entries. Several may point at one object: it was tagged for the first of them."""
    counted: set[str] = set()
    results: list[EntryResult] = []
    for row in rows:
        if row.fault is not None:
            results.append(EntryResult.from_error(row.entry, row.fault, name_outcome(row.fault)))
            continue
        results.append(_judge_row(row, by_key, counted))
        counted.update(each.production for each in row.objects)
    return results


def _judge_row(row: TaggedRow, by_key: Mapping[str, ObjectResult], counted: set[str]) -> EntryResult:
    """Return the worst of what its objects have met: failed, missing, conflict, tagged, equal."""
    errors = [
        (each.production, result)
        for each in row.objects
        if isinstance(result := by_key[each.production], ObjectError)
        and (each.is_required or not isinstance(result, ObjectNotFound))
    ]
    if errors:
        key, error = min(errors, key=lambda each: _ORDER.index(name_outcome(each[1])))
        return EntryResult.from_error(row.entry, error, name_outcome(error), key)
    new = {each.production for each in row.objects} - counted
    tagged = any(isinstance(r := by_key[key], CopyResult) and r.outcome is Outcome.MIGRATED for key in new)
    return EntryResult(row.entry, Outcome.MIGRATED if tagged else Outcome.KEPT)


_ORDER = (Outcome.FAILED, Outcome.MISSING, Outcome.CONFLICT)


def name_outcome(error: ObjectError) -> Outcome:
    """Return the outcome of an entry whose object has met this error."""
    if isinstance(error, ObjectNotFound):
        return Outcome.MISSING
    return Outcome.CONFLICT if isinstance(error, TagConflict) else Outcome.FAILED
