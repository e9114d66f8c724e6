"""The two ways an object travels: the production server copies it, or this process streams it. No disk is touched."""

import base64
import hashlib
from functools import partial
from typing import NamedTuple, Protocol

from rowferry.errors import ANSWER_TOO_LONG, ObjectDamaged, ObjectError, ObjectRejected
from rowferry.s3.operations import copy_object, get_object, put_object
from rowferry.s3.responses import Answer
from rowferry.s3.results import read_copied_etag, read_written_etag
from rowferry_worker.objects.compare import md5_of
from rowferry_worker.objects.conditional_writes import Guard, Writing
from rowferry_worker.objects.journey import Steps, demand, head, name_place, read_etag, refuse_web_server, size_of
from rowferry_worker.objects.multipart import READ_BYTES, CopiedParts, Large, StreamedParts, send_in_parts
from rowferry_worker.objects.tags import Tagging

COPY_LIMIT_BYTES = 5 * 1024**3
"""The most that CopyObject copies. Source: Amazon S3 API Reference, "CopyObject"."""
COPY_PART_BYTES = 512 * 1024 * 1024
STREAM_PART_BYTES = READ_BYTES

KEPT_HEADERS = (
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
)
"""What a new object is told of the legacy one, besides `x-amz-meta-...` and the tags. The S3 server of the demo has a
list of its own (lab/rowferry_lab/servers/memory_store.py), on purpose: a stand-in must not learn from what it tests."""

KEPT_CLASSES = frozenset({"STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY"})
"""Storage classes whose objects can be read at once; a row must never point at one that has to be restored first."""


class Written(NamedTuple):
    """An object that was written."""

    size_bytes: int
    """As far as known, else 0: a server does not tell what it copied."""
    operation: Writing
    """What put it in its place."""
    etag: str = ""
    """As the server told it, unquoted; empty for what went by parts."""


class Carrier(Protocol):
    """A way to bring the object at `source_key` to `target_key`, with its metadata, content headers and tags."""

    operation: Writing
    """The S3 operation that writes objects of an ordinary size."""
    moves_bytes: bool
    """Whether the bytes pass through this process."""

    def carry(self, source_key: str, target_key: str, guard: Guard, tagging: Tagging) -> Steps[Written]:
        """Write the production object.

        Raises ObjectNotFound when there is no legacy object; PreconditionFailed (Standing, where it was seen) when an
        object stands at `target_key` that the guard keeps; any other ObjectError as it comes.
        """
        ...


class ServerCopy:
    """Both sides are one endpoint: CopyObject, or UploadPartCopy where the object is too large for it."""

    operation: Writing = "CopyObject"
    moves_bytes = False

    def __init__(self, legacy_bucket: str, threshold_bytes: int | None = None) -> None:
        """Name the bucket to copy from; `threshold_bytes`: larger objects go part by part, None: the server decides."""
        self._bucket = legacy_bucket
        self._threshold_bytes = threshold_bytes

    def carry(self, source_key: str, target_key: str, guard: Guard, tagging: Tagging) -> Steps[Written]:
        """Ask the production server for a copy."""
        if self._threshold_bytes is not None:
            seen = yield from head("legacy", source_key)
            if size_of(seen) > self._threshold_bytes:
                return (yield from self._carry_parts(Large(source_key, seen, target_key), guard, tagging))
        build = partial(copy_object, target_key, source_bucket=self._bucket, source_key=source_key)
        request, answer = yield from guard.write("CopyObject", lambda condition: build(if_none_match=condition))
        if answer.error is None:
            etag = demand(read_copied_etag, answer, request)
            yield from tagging.follow_copy(source_key, target_key)
            return Written(0, "CopyObject", etag)
        if answer.error.code in {"EntityTooLarge", "InvalidRequest"}:
            seen = yield from head("legacy", source_key)
            if _is_too_large(answer.error, size_of(seen)):
                return (yield from self._carry_parts(Large(source_key, seen, target_key), guard, tagging))
        raise name_place(answer.error, request)

    def _carry_parts(self, large: Large, guard: Guard, tagging: Tagging) -> Steps[Written]:
        """Have the server copy the object part by part, each pinned to the ETag first seen, and look at the whole."""
        headers = describe_object(large.seen, keep_class=True)
        tags = yield from tagging.read(large.source_key, large.seen)
        headers += tagging.header(tags, "CreateMultipartUpload")
        part_bytes = min(COPY_PART_BYTES, self._threshold_bytes or COPY_PART_BYTES)
        parts = CopiedParts(self._bucket, large)
        yield from send_in_parts(large, headers, parts, part_bytes=part_bytes, guard=guard)
        written = yield from head("production", large.target_key)
        if size_of(written) != size_of(large.seen):
            sizes = f"{size_of(written)} bytes stand there, {size_of(large.seen)} were copied"
            raise ObjectDamaged("SizeMismatch", sizes)
        yield from tagging.settle(large.target_key, tags, "CreateMultipartUpload", written)
        return Written(size_of(written), "CompleteMultipartUpload")


class StreamCopy:
    """The sides are two endpoints: GET from one, PUT to the other; large objects part by part."""

    operation: Writing = "PutObject"
    moves_bytes = True

    def __init__(self, *, keep_class: bool = False, threshold_bytes: int | None = None) -> None:
        """`keep_class`: the sides know the same storage classes; `threshold_bytes`: larger objects go part by part."""
        self._keep_class = keep_class
        self._threshold_bytes = threshold_bytes

    def carry(self, source_key: str, target_key: str, guard: Guard, tagging: Tagging) -> Steps[Written]:
        """Read the legacy object into memory and write it, with its digest checked at both ends."""
        read = get_object("legacy", source_key)
        answer = yield read
        if answer.error is not None:
            if answer.error.code != ANSWER_TOO_LONG:
                raise name_place(answer.error, read)
            seen = yield from head("legacy", source_key)
            return (yield from self._carry_parts(Large(source_key, seen, target_key), guard, tagging))
        demand(read_etag, answer, read)
        yield from refuse_web_server(read, answer)
        digest = hashlib.md5(answer.body, usedforsecurity=False)
        check_digest(answer, digest.hexdigest(), "read")
        headers = describe_object(answer, keep_class=self._keep_class)
        tags = yield from tagging.read(source_key, answer)
        headers += tagging.header(tags, "PutObject")
        headers.append(("Content-MD5", base64.b64encode(digest.digest()).decode()))
        build = partial(put_object, target_key, answer.body, headers=headers)
        request, written = yield from guard.write("PutObject", lambda condition: build(if_none_match=condition))
        if written.error is not None:
            raise name_place(written.error, request)
        etag = demand(read_written_etag, written, request)
        check_digest(written, digest.hexdigest(), "written")
        yield from tagging.settle(target_key, tags, "PutObject")
        return Written(len(answer.body), "PutObject", etag)

    def _carry_parts(self, large: Large, guard: Guard, tagging: Tagging) -> Steps[Written]:
        """Read and write the object part by part, with the digests of the parts and of the whole checked."""
        headers = describe_object(large.seen, keep_class=self._keep_class)
        tags = yield from tagging.read(large.source_key, large.seen)
        headers += tagging.header(tags, "CreateMultipartUpload")
        part_bytes = limit_part(self._threshold_bytes)
        parts = StreamedParts(large, read_bytes=part_bytes)
        yield from send_in_parts(large, headers, parts, part_bytes=part_bytes, guard=guard)
        yield from tagging.settle(large.target_key, tags, "CreateMultipartUpload")
        return Written(size_of(large.seen), "CompleteMultipartUpload")


def _is_too_large(refusal: ObjectError, size_bytes: int) -> bool:
    """Return whether CopyObject was refused for the object's size: InvalidRequest has a hundred other reasons."""
    return size_bytes > (0 if refusal.code == "EntityTooLarge" else COPY_LIMIT_BYTES)


def limit_part(threshold_bytes: int | None) -> int:
    """Return the most bytes of a streamed object that are read at once; larger objects go part by part."""
    return min(STREAM_PART_BYTES, threshold_bytes or STREAM_PART_BYTES)


def check_digest(answer: Answer, digest: str, what: str) -> None:
    """Raise ObjectDamaged when the server's ETag is an MD5 and not that of the bytes we hold."""
    expected = md5_of(answer)
    if expected is not None and expected != digest:
        raise ObjectDamaged("DigestMismatch", f"the bytes {what} have MD5 {digest}, the server says {expected}")


def describe_object(answer: Answer, *, keep_class: bool) -> list[tuple[str, str]]:
    """Return the headers that give a new object the content headers, metadata and storage class of the legacy one.

    The storage class is left to the bucket unless `keep_class`, and where it would make an archive of the object.
    Raises ObjectRejected for what headers cannot bring along.
    """
    headers = [(name, answer.headers[name]) for name in KEPT_HEADERS if name in answer.headers]
    headers += [(name, value) for name, value in answer.headers.items() if name.startswith("x-amz-meta-")]
    storage_class = answer.headers.get("x-amz-storage-class", "")
    if keep_class and storage_class in KEPT_CLASSES:
        headers.append(("x-amz-storage-class", storage_class))
    if "x-amz-website-redirect-location" in answer.headers:
        raise ObjectRejected("WebsiteRedirect", "the object is a website redirect, which a copy would lose")
    if answer.headers.get("x-amz-missing-meta", "0").strip() != "0":
        words = "some of the object's metadata does not fit into headers, so a copy would lose it"
        raise ObjectRejected("MissingMetadata", words)
    return headers
