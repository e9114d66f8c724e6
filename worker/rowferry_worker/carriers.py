"""The two ways an object travels: the production server copies it, or this process streams it. No disk is touched."""

import base64
import hashlib
from collections.abc import Generator
from typing import Protocol
from urllib.parse import urlencode

from rowferry.errors import ANSWER_TOO_LONG, ObjectDamaged, ObjectRejected, ServerFault
from rowferry.s3_answer import Answer, read_tags
from rowferry.s3_request import Request, copy_object, get_object, get_object_tagging, head_object, put_object
from rowferry_worker.compare import md5_of
from rowferry_worker.journey import ask
from rowferry_worker.parts import READ_BYTES, StreamedParts, copy_part, send_in_parts

TOO_LARGE_TO_COPY = frozenset({"EntityTooLarge", "InvalidRequest"})
"""Error codes by which servers refuse a CopyObject of more than 5 GiB."""
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
list of its own (rowferry/demo/memory_store.py), on purpose: a stand-in must not learn from what it tests."""

KEPT_CLASSES = frozenset({"STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY"})
"""Storage classes whose objects can be read at once; a row must never point at one that has to be restored first."""


class Carrier(Protocol):
    """A way to bring the object at `source_key` to `target_key`, with its metadata, content headers and tags."""

    operation: str
    """The S3 operation that writes."""

    def carry(self, source_key: str, target_key: str, *, if_none_match: bool) -> Generator[Request, Answer, int]:
        """Write the production object and return its bytes as far as known, else 0.

        Raises ObjectNotFound when there is no legacy object; PreconditionFailed when `if_none_match` was honoured
        and an object stands at `target_key`; any other ObjectError as it comes.
        """
        ...


class ServerCopy:
    """Both sides are one endpoint: CopyObject, or UploadPartCopy where the object is too large for it."""

    operation = "CopyObject"

    def __init__(self, legacy_bucket: str, threshold_bytes: int | None = None) -> None:
        """Name the bucket to copy from; `threshold_bytes`: larger objects go part by part, None: the server decides."""
        self._bucket = legacy_bucket
        self._threshold_bytes = threshold_bytes

    def carry(self, source_key: str, target_key: str, *, if_none_match: bool) -> Generator[Request, Answer, int]:
        """Ask the production server for a copy."""
        if self._threshold_bytes is not None:
            head = yield from ask(head_object("legacy", source_key))
            if (head.content_length or 0) > self._threshold_bytes:
                return (yield from self._carry_parts(source_key, target_key, head, if_none_match=if_none_match))
        request = copy_object(
            target_key, source_bucket=self._bucket, source_key=source_key, if_none_match=if_none_match
        )
        answer = yield request
        if answer.error is None:
            if b"ETag" not in answer.body and "etag" not in answer.headers:
                # A 200 that was cut off may have been about to tell an error.
                raise ServerFault("UnreadableAnswer", "the server did not say what it had copied")
            return 0
        if answer.error.code in TOO_LARGE_TO_COPY:
            head = yield from ask(head_object("legacy", source_key))
            return (yield from self._carry_parts(source_key, target_key, head, if_none_match=if_none_match))
        raise answer.error

    def _carry_parts(
        self, source_key: str, target_key: str, head: Answer, *, if_none_match: bool
    ) -> Generator[Request, Answer, int]:
        """Have the server copy the object part by part, each pinned to the ETag in `head`, and look at the whole."""
        headers = yield from describe_object(source_key, head, keep_class=True)
        part = copy_part(self._bucket, source_key, target_key, head)
        part_bytes = min(COPY_PART_BYTES, self._threshold_bytes or COPY_PART_BYTES)
        yield from send_in_parts(target_key, head, headers, part, part_bytes=part_bytes, if_none_match=if_none_match)
        written = yield from ask(head_object("production", target_key))
        if written.content_length != head.content_length:
            sizes = f"{written.content_length} bytes stand there, {head.content_length} were copied"
            raise ObjectDamaged("SizeMismatch", sizes)
        return head.content_length or 0


class StreamCopy:
    """The sides are two endpoints: GET from one, PUT to the other; large objects part by part."""

    operation = "PutObject"

    def __init__(self, *, keep_class: bool = False, threshold_bytes: int | None = None) -> None:
        """`keep_class`: the sides know the same storage classes; `threshold_bytes`: larger objects go part by part."""
        self._keep_class = keep_class
        self._threshold_bytes = threshold_bytes

    def carry(self, source_key: str, target_key: str, *, if_none_match: bool) -> Generator[Request, Answer, int]:
        """Read the legacy object into memory and write it, with its digest checked at both ends."""
        answer = yield get_object("legacy", source_key)
        if answer.error is not None and answer.error.code == ANSWER_TOO_LONG:
            head = yield from ask(head_object("legacy", source_key))
            return (yield from self._carry_parts(source_key, target_key, head, if_none_match=if_none_match))
        if answer.error is not None:
            raise answer.error
        digest = hashlib.md5(answer.body, usedforsecurity=False)
        check_digest(answer, digest.hexdigest(), "read")
        headers = yield from describe_object(source_key, answer, keep_class=self._keep_class)
        headers.append(("Content-MD5", base64.b64encode(digest.digest()).decode()))
        request = put_object(target_key, answer.body, headers=headers, if_none_match=if_none_match)
        written = yield from ask(request)
        check_digest(written, digest.hexdigest(), "written")
        return len(answer.body)

    def _carry_parts(
        self, source_key: str, target_key: str, head: Answer, *, if_none_match: bool
    ) -> Generator[Request, Answer, int]:
        """Read and write the object part by part, with the digests of the parts and of the whole checked."""
        headers = yield from describe_object(source_key, head, keep_class=self._keep_class)
        part_bytes = limit_part(self._threshold_bytes)
        parts = StreamedParts(source_key, target_key, head, read_bytes=part_bytes)
        completed = yield from send_in_parts(
            target_key, head, headers, parts.send, part_bytes=part_bytes, if_none_match=if_none_match
        )
        parts.check_written(completed)
        return head.content_length or 0


def limit_part(threshold_bytes: int | None) -> int:
    """Return the most bytes of a streamed object that are read at once; larger objects go part by part."""
    return min(STREAM_PART_BYTES, threshold_bytes or STREAM_PART_BYTES)


def check_digest(answer: Answer, digest: str, what: str) -> None:
    """Raise ObjectDamaged when the server's ETag is an MD5 and not that of the bytes we hold."""
    expected = md5_of(answer)
    if expected is not None and expected != digest:
        raise ObjectDamaged("DigestMismatch", f"the bytes {what} have MD5 {digest}, the server says {expected}")


def describe_object(key: str, answer: Answer, *, keep_class: bool) -> Generator[Request, Answer, list[tuple[str, str]]]:
    """Return the headers that give a new object the content headers, metadata, tags and class of the legacy one.

    The storage class is left to the bucket unless `keep_class`, and where it would make an archive of the object.
    """
    headers = [(name, answer.headers[name]) for name in KEPT_HEADERS if name in answer.headers]
    headers += [(name, value) for name, value in answer.headers.items() if name.startswith("x-amz-meta-")]
    storage_class = answer.headers.get("x-amz-storage-class", "")
    if keep_class and storage_class in KEPT_CLASSES:
        headers.append(("x-amz-storage-class", storage_class))
    if "x-amz-website-redirect-location" in answer.headers:
        raise ObjectRejected("WebsiteRedirect", "the object is a website redirect, which a copy would lose")
    if int(answer.headers.get("x-amz-tagging-count", "0")):
        tagging = yield from ask(get_object_tagging("legacy", key))
        headers.append(("x-amz-tagging", urlencode(read_tags(tagging.body))))
    return headers
