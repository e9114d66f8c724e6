"""What a batch of `tag` does: read the tags of each production object, and write them where something changes."""

from collections.abc import Mapping, Sequence
from typing import cast
from weakref import WeakSet

from rowferry.batch import Entry, Outcome, Performed
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
from rowferry.plan.properties import MAX_TAGS
from rowferry.s3.operations import get_object_tagging, put_object_tagging
from rowferry.s3.responses import name_request, read_tags
from rowferry.s3.retry import TRIES
from rowferry_queues.folders import expand_folders, note_first
from rowferry_queues.tag.spec import TagConflict, TagSettings
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.objects import Judge, MappedRow, find_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import CopyResult, log_copy
from rowferry_worker.objects.requests import UNKNOWN, ObjectRequests, Tags, demand, object_changed
from rowferry_worker.scheduling.copy_run import ObjectResult


def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Tag the objects of production entries."""
    settings = cast("TagSettings", context.settings)
    if is_listed(context):
        return tag_listed(context, settings, entries)
    queries = find_queries(context)
    rows = find_rows(entries, queries.entries, "production")
    tags, goes_on = {row.entry: settings.choose_tags(row.entry) for row in rows}, False
    rows = [row if tags[row.entry] else MappedRow(row.entry) for row in rows]
    if queries.entries.names_folders:
        folders = expand_folders(context, queries.entries, rows, ("production",))
        by_key = tag_objects(context, folders, tags)
        rows, goes_on = note_first(context, folders, by_key, "production")
    else:
        by_key = tag_objects(context, rows, tags)
    judge = Judge(by_key, "production")
    started, rest = judge.split_started(rows)
    results = look_again(context, queries, [judge.judge(row) for row in started], "production")
    return Performed(results, rest, goes_on)


def tag_listed(context: BatchContext, settings: TagSettings, entries: Sequence[Entry]) -> Performed:
    """Tag objects that no row names. Raises MigrationFault where only a row could tell which tags they get."""
    if settings.reads_rows:
        words = f"{context.batch.payload['entries']} has no rows: name the [[entries]] that are meant in `of`"
        raise MigrationFault(f"{words} of [queue.{context.queue.spec.name}]")
    tags = settings.choose_tags(Entry("", ""))

    def work(objects: Sequence[ObjectKeys]) -> dict[str, ObjectResult]:
        by_key = run_tagging(context, {keys.production: tags for keys in objects})
        return {keys.legacy: by_key[keys.production] for keys in objects}

    return run_range(context, entries, work)


def tag_objects(
    context: BatchContext, rows: Sequence[MappedRow], tags: Mapping[Entry, Mapping[str, str]]
) -> dict[str, ObjectResult]:
    """Tag the object of each production key once, and return how each ended; where rows disagree, it is a conflict."""
    wanted: dict[str, dict[str, str]] = {}
    refused: dict[str, ObjectResult] = {}
    for row in rows:
        for key in row.list_keys("production"):
            before = wanted.get(key, {})
            merged = {**before, **tags[row.entry]}
            if torn := [name for name, value in before.items() if merged[name] != value]:
                why = f"two rows of the batch point at this object, and ask for different values of the tag {torn[0]!r}"
                refused[key] = TagConflict("RowsDisagree", why)
            wanted[key] = merged
    return run_tagging(context, {key: tags for key, tags in wanted.items() if key not in refused}) | refused


def run_tagging(context: BatchContext, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, ObjectResult]:
    """Give the objects of these production keys their tags."""
    s3, owner = context.object_requests(), context.migration
    return run_copies(context, lambda key: log_copy(tag_object(s3, owner, key, wanted[key]), key, key), wanted)


def merge_tags(found: Tags, wanted: Mapping[str, str]) -> Tags | None:
    """Return all tags that an object is to have, at most MAX_TAGS; None where it has the wanted ones already.

    Tags that are not wanted keep their values and places. Raises TagConflict where there are too many.
    """
    held = dict(found)
    if wanted.items() <= held.items():
        return None
    merged = {**held, **wanted}
    if len(merged) > MAX_TAGS:
        new = ", ".join(repr(name) for name in wanted if name not in held)
        more = f"and {new} would be more" if new else "more"
        words = f"the object has {len(held)} tags, {more} than the {MAX_TAGS} that S3 takes"
        raise TagConflict("TooManyTags", words)
    return tuple(merged.items())


WRITE = "PutObjectTagging"
_keeping = WeakSet[object]()
"""The migrations whose server was seen to keep tags that it takes."""


async def tag_object(s3: ObjectRequests, owner: object, key: str, wanted: Mapping[str, str]) -> CopyResult:
    """Return MIGRATED where tags were written, KEPT where the object had them: read what it has, merge, write.

    `owner`: the migration, whose first write is looked at.

    S3 has no condition for PutObjectTagging (neither If-Match nor If-None-Match; Amazon S3 API Reference), so a tag
    that another client sets between the read and the write would be lost. The window is kept as short as S3 lets it be:
    the turn of the write is waited for before the read, and each try of the write reads anew. Where the bucket is
    versioned, the tags go to the version that was read.

    Raises TagConflict where S3 takes no such set, ObjectNotFound where there is no object, ObjectRejected where the
    server has no tags, ServerFault where it loses them.
    """
    version = None
    try:
        for tried in range(1, TRIES + 1):
            await s3.take_turn("production", WRITE)
            found, version = await fetch_tags(s3, key)
            tags = merge_tags(found, wanted)
            if tags is None:
                return CopyResult(Outcome.KEPT if tried == 1 else Outcome.MIGRATED)
            try:
                await s3.send_once(put_object_tagging(key, tags, version=version))
                break
            except ObjectError as error:
                await s3.wait_before_retry("production", error, tried, TRIES)
    except ObjectError as error:
        meant = explain(error, key, names_version=version is not None)
        raise meant from (error.__cause__ if meant is error else error)
    if owner not in _keeping and merge_tags((await fetch_tags(s3, key))[0], wanted) is not None:
        lost = "the tags are not there after they were written: the server loses them, or another client has set others"
        raise ServerFault("TagsLost", lost)
    _keeping.add(owner)
    return CopyResult(Outcome.MIGRATED)


async def fetch_tags(s3: ObjectRequests, key: str) -> tuple[Tags, str | None]:
    """Return the tags of a production object, and the version that has them where the server tells it."""
    request = get_object_tagging("production", key)
    unknown = name_request(ObjectRejected("TagsUnknown", "the production server knows no tags"), request)
    try:
        response = await s3.send(request)
    except ObjectError as error:
        if error.code == "NoSuchTagSet":
            return (), None
        if error.headers.get("x-amz-delete-marker") == "true":
            raise ObjectNotFound("NoSuchKey", "the last version of the object is a delete marker") from error
        if error.code in UNKNOWN:
            raise unknown from error
        raise
    if response.etag is not None:  # it is the object itself, and so would be what is put
        raise unknown
    return demand(lambda seen: read_tags(seen.body), response, request), response.headers.get("x-amz-version-id")


def explain(error: ObjectError, key: str, *, names_version: bool) -> ObjectError:
    """Return what an error of the write means, where its class does not say it; any other error as it is."""
    meant = error
    if error.operation != WRITE:
        return error
    if isinstance(error, AccessDenied) and names_version:  # S3 calls the right to the same request so
        error.operation = "PutObjectVersionTagging"
        error.where = error.where.replace(WRITE, error.operation)
    elif error.code == "InvalidTag":
        meant = TagConflict(error.code, error.message)
    elif error.code == "NoSuchVersion":
        meant = object_changed("production", key)
    elif isinstance(error, PreconditionFailed):  # OperationAborted: another write of this object is under way
        meant = ServerFault(error.code, error.message)
    meant.side, meant.operation, meant.where = error.side, error.operation, error.where
    return meant
