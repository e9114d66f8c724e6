"""What a batch of `tag` does: read the tags of each production object, and write them where something changes."""

from collections.abc import Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from msgspec import field

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.errors import (
    AccessDenied,
    MigrationFault,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    ServerFault,
)
from rowferry.keys import ObjectKeys
from rowferry.s3.operations import Request, get_object_tagging, put_object_tagging
from rowferry.s3.responses import name_request, read_tags
from rowferry_queues.tag.merge import TagConflict, Tags, combine, merge_tags, refuse_unfit
from rowferry_queues.tag.spec import TagSettings
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.folders import NOT_LISTED, expand_folders, leave_first, list_listed
from rowferry_worker.batch.objects import Judge, MappedRow, find_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import CopyResult, log_copy
from rowferry_worker.migration import MigrationContext
from rowferry_worker.objects.requests import UNKNOWN, ObjectRequests, demand, object_changed
from rowferry_worker.scheduling.scheduler import ObjectResult


def perform(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Tag the objects of production entries; return one result for each of them."""
    settings = cast("TagSettings", context.settings)
    if is_listed(context):
        refuse_without_rows(context, settings)
        tags = settings.choose_tags(Entry("", ""))
        return run_range(context, entries, lambda objects: tag_listed(context, objects, tags))
    queries = find_queries(context)
    found = find_rows(entries, queries.entries, "production")
    if queries.entries.names_folders:
        found = expand_folders(context, queries.entries, found, ("production",))
    rows = [choose_tags(row, settings) for row in found]
    by_key = {**tag_objects(context, rows), **NOT_LISTED}
    rows = leave_first(context, rows, by_key, "production")
    judge = Judge(by_key, "production")
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
    for row, objects in zip(rows, list_listed(rows), strict=True):
        for each in objects:
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


WRITE = "PutObjectTagging"
WRITE_OF_VERSION = "PutObjectVersionTagging"
"""What S3 calls the right to the same request where it names a version."""


class TagWrites:
    """Whether a server keeps the tags that it takes; shared by all objects of a migration that a process tags."""

    def __init__(self) -> None:
        self.are_kept = False
        """True once tags were found that had been written before."""


_writes: WeakKeyDictionary[MigrationContext, TagWrites] = WeakKeyDictionary()


class _Equal(Exception):
    """The object has all the tags that it is to get."""


async def tag_object(s3: ObjectRequests, writes: TagWrites, key: str, wanted: Mapping[str, str]) -> CopyResult:
    """Return MIGRATED where tags were written, KEPT where the object had them: read what it has, merge, write.

    S3 has no condition for PutObjectTagging (neither If-Match nor If-None-Match; Amazon S3 API Reference), so a tag
    that another client sets between the read and the write would be lost. The window is kept as short as S3 lets it be:
    the turn of the write is waited for before the read, and each try of the write reads anew. Where the bucket is
    versioned, the tags go to the version that was read.

    Raises TagConflict where S3 takes no such set, ObjectNotFound where there is no object, ObjectRejected where the
    server has no tags, ServerFault where it loses them.
    """
    sent, version = 0, None

    async def prepare() -> Request:
        nonlocal sent, version
        found, version = await fetch_tags(s3, key)
        tags = merge_tags(found, wanted)
        if tags is None:
            raise _Equal
        sent += 1
        return put_object_tagging(key, tags, version=version)

    try:
        await s3.send(prepare, turn_of=("production", WRITE))
    except _Equal:
        return CopyResult(Outcome.MIGRATED if sent else Outcome.KEPT)
    except ObjectError as error:
        raise explain(error, key, names_version=version is not None) from error
    if not writes.are_kept:
        await confirm_tags(s3, writes, key, wanted)
    return CopyResult(Outcome.MIGRATED)


async def fetch_tags(s3: ObjectRequests, key: str) -> tuple[Tags, str | None]:
    """Return the tags of a production object, and the version that has them where the server tells it."""
    request = get_object_tagging("production", key)
    try:
        response = await s3.send(request)
    except ObjectError as error:
        if error.code == "NoSuchTagSet":
            return (), None
        if error.headers.get("x-amz-delete-marker") == "true":
            raise ObjectNotFound("NoSuchKey", "the last version of the object is a delete marker") from error
        if error.code in UNKNOWN:
            raise name_request(ObjectRejected("TagsUnknown", "the production server knows no tags"), request) from error
        raise
    if response.etag is not None:  # it is the object itself, and so would be what is put
        raise name_request(ObjectRejected("TagsUnknown", "the production server knows no tags"), request)
    return demand(lambda seen: read_tags(seen.body), response, request), response.headers.get("x-amz-version-id")


async def confirm_tags(s3: ObjectRequests, writes: TagWrites, key: str, wanted: Mapping[str, str]) -> None:
    """Note that the server keeps tags. Raises ServerFault where they are not there, though they were just written."""
    found, _ = await fetch_tags(s3, key)
    if merge_tags(found, wanted) is not None:
        words = (
            "the tags are not there after they were written: the server loses them, or another client has set others"
        )
        raise ServerFault("TagsLost", words)
    writes.are_kept = True


def explain(error: ObjectError, key: str, *, names_version: bool) -> ObjectError:
    """Return what an error of the write means, where its class does not say it; any other error as it is."""
    if error.operation != WRITE:
        return error
    if isinstance(error, AccessDenied) and names_version:
        error.operation, error.where = WRITE_OF_VERSION, error.where.replace(WRITE, WRITE_OF_VERSION)
    meant = error
    if error.code == "InvalidTag":
        meant = TagConflict(error.code, error.message)
    elif error.code == "NoSuchVersion":
        meant = object_changed("production", key)
    elif isinstance(error, PreconditionFailed):  # OperationAborted: another write of this object is under way
        meant = ServerFault(error.code, error.message)
    meant.side, meant.operation, meant.where = error.side, error.operation, error.where
    return meant
