"""Sets tags of one production object: read what it has, merge, write what changes.

S3 has no condition for PutObjectTagging (neither If-Match nor If-None-Match; Amazon S3 API Reference), so a tag that
another client sets between the read and the write would be lost. The window is kept as short as S3 lets it be: the turn
of the write is waited for before the read, and each try of the write reads anew. Where the bucket is versioned, the
tags go to the version that was read.
"""

from collections.abc import Mapping

from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, ObjectError, ObjectNotFound, ObjectRejected, PreconditionFailed, ServerFault
from rowferry.s3.operations import Request, get_object_tagging, put_object_tagging
from rowferry.s3.responses import name_request, read_tags
from rowferry_queues.tag.merge import TagConflict, Tags, merge_tags
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.objects.requests import UNKNOWN, ObjectRequests, demand, object_changed

WRITE = "PutObjectTagging"
WRITE_OF_VERSION = "PutObjectVersionTagging"
"""What S3 calls the right to the same request where it names a version."""


class TagWrites:
    """Whether a server keeps the tags that it takes; shared by all objects of a migration that a process tags."""

    def __init__(self) -> None:
        self.are_kept = False
        """True once tags were found that had been written before."""


class _Equal(Exception):
    """The object has all the tags that it is to get."""


async def tag_object(s3: ObjectRequests, writes: TagWrites, key: str, wanted: Mapping[str, str]) -> CopyResult:
    """Return MIGRATED where tags were written, KEPT where the object had them.

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
        await look_again(s3, writes, key, wanted)
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


async def look_again(s3: ObjectRequests, writes: TagWrites, key: str, wanted: Mapping[str, str]) -> None:
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
