"""Objects too large for one request: a multipart upload, each part pinned to the ETag that the first look saw."""

import base64
import hashlib
import re
from collections.abc import Callable, Generator
from typing import TypeVar

from rowferry.errors import ObjectDamaged, ObjectError, ServerFault
from rowferry.s3_answer import Answer, read_text
from rowferry.s3_request import (
    Request,
    abort_multipart_upload,
    complete_multipart_upload,
    create_multipart_upload,
    get_object,
    upload_part,
    upload_part_copy,
)
from rowferry_worker.compare import is_encrypted, md5_of
from rowferry_worker.journey import ask

MAX_PARTS = 10_000
"""Source: Amazon S3 User Guide, "Multipart upload limits"."""

READ_BYTES = 8 * 1024 * 1024
"""The most that is read at once: parts are larger only where an object of over 80 GB would make too many of them."""

T = TypeVar("T")
Steps = Generator[Request, Answer, T]
SendPart = Callable[[str, int, int, int], Steps[str]]
"""Sends one part: (upload id, part number from 1, first byte, last byte included) → its unquoted ETag."""


def send_in_parts(
    target_key: str,
    head: Answer,
    headers: list[tuple[str, str]],
    send_part: SendPart,
    *,
    part_bytes: int,
    if_none_match: bool,
) -> Steps[Answer]:
    """Write an object part by part and return the answer that completed it; one part is in memory at a time.

    An upload that fails is aborted, so that nothing of it stays behind.
    """
    size_bytes = head.content_length or 0
    begun = yield from ask(create_multipart_upload(target_key, headers=headers))
    upload_id = read_text(begun.body, "UploadId")
    if not upload_id:
        raise ServerFault("UnreadableAnswer", "the server began an upload without naming it")
    try:
        parts = yield from _send_all(upload_id, size_bytes, part_size(size_bytes, part_bytes), send_part)
        complete = complete_multipart_upload(target_key, upload_id=upload_id, parts=parts, if_none_match=if_none_match)
        completed = yield from ask(complete)
        if not completed.etag:
            raise ServerFault("UnreadableAnswer", "the server did not say what it had put together")
        return completed
    except ObjectError:
        yield abort_multipart_upload(target_key, upload_id=upload_id)
        raise


def part_size(size_bytes: int, wanted_bytes: int) -> int:
    """Return the size of a part: `wanted_bytes`, or more where that would make over 10,000 parts."""
    return max(wanted_bytes, -(-size_bytes // MAX_PARTS))


def copy_part(legacy_bucket: str, source_key: str, target_key: str, head: Answer) -> SendPart:
    """Return the way to have the production server copy a part itself."""

    def send(upload_id: str, number: int, first: int, last: int) -> Steps[str]:
        request = upload_part_copy(
            target_key,
            source_bucket=legacy_bucket,
            source_key=source_key,
            source_etag=head.etag or "",
            first_byte=first,
            last_byte=last,
            upload_id=upload_id,
            part_number=number,
        )
        return _etag_of((yield from ask(request)))

    return send


class StreamedParts:
    """Reads parts from one endpoint and writes them to the other, with their digests checked at both ends."""

    def __init__(self, source_key: str, target_key: str, head: Answer, *, read_bytes: int = READ_BYTES) -> None:
        """`head`: the legacy object's headers; `read_bytes`: the most that is asked for at once."""
        self._source_key = source_key
        self._target_key = target_key
        self._head = head
        self._read_bytes = read_bytes
        self._whole = hashlib.md5(usedforsecurity=False)
        self._digests: list[bytes] = []
        self._all_told = True
        """Whether each part's ETag was its MD5, so that the whole object's will be the MD5 of those."""

    def send(self, upload_id: str, number: int, first: int, last: int) -> Steps[str]:
        """Send one part, in order, and return its ETag. Raises ObjectDamaged when bytes are not what they were."""
        pieces: list[bytes] = []
        for begin in range(first, last + 1, self._read_bytes):
            end = min(begin + self._read_bytes - 1, last)
            request = get_object("legacy", self._source_key, first_byte=begin, last_byte=end, if_match=self._head.etag)
            pieces.append((yield from ask(request)).body)
        body = pieces.pop() if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        if len(body) != last - first + 1:
            raise ObjectDamaged("TruncatedBody", f"{len(body)} bytes came of {last - first + 1}")
        self._check_read(body, is_last=last + 1 == self._head.content_length)
        digest = hashlib.md5(body, usedforsecurity=False)
        headers = (("Content-MD5", base64.b64encode(digest.digest()).decode()),)
        request = upload_part(self._target_key, body, upload_id=upload_id, part_number=number, headers=headers)
        sent = yield from ask(request)
        told = md5_of(sent)
        if told is not None and told != digest.hexdigest():
            raise ObjectDamaged("DigestMismatch", f"part {number} has MD5 {digest.hexdigest()}, the server says {told}")
        self._all_told = self._all_told and told is not None
        self._digests.append(digest.digest())
        return _etag_of(sent)

    def check_written(self, completed: Answer) -> None:
        """Raise ObjectDamaged when the whole object's ETag is made of its parts' MD5s, and not of those we hold.

        Such an ETag is the MD5 of the parts' MD5s and their number. Source: Amazon S3 User Guide, "Checking object
        integrity".
        """
        told = (read_text(completed.body, "ETag") or "").strip('"')
        expected = f"{hashlib.md5(b''.join(self._digests), usedforsecurity=False).hexdigest()}-{len(self._digests)}"
        is_composite = re.fullmatch(r"[0-9a-f]{32}-\d+", told) and not is_encrypted(completed)
        if self._all_told and is_composite and told != expected:
            raise ObjectDamaged("DigestMismatch", f"the object written should have ETag {expected}, it has {told}")

    def _check_read(self, body: bytes, *, is_last: bool) -> None:
        """Take a part into the digest of the whole; at the end, hold it against the legacy ETag where that is one."""
        self._whole.update(body)
        expected = md5_of(self._head)
        if is_last and expected is not None and expected != self._whole.hexdigest():
            words = f"the bytes read have MD5 {self._whole.hexdigest()}, the server says {expected}"
            raise ObjectDamaged("DigestMismatch", words)


def _send_all(upload_id: str, size_bytes: int, part_bytes: int, send_part: SendPart) -> Steps[list[tuple[int, str]]]:
    parts: list[tuple[int, str]] = []
    for number, first in enumerate(range(0, size_bytes, part_bytes), 1):
        last = min(first + part_bytes, size_bytes) - 1
        parts.append((number, (yield from send_part(upload_id, number, first, last))))
    return parts


def _etag_of(answer: Answer) -> str:
    if not answer.etag:
        raise ServerFault("UnreadableAnswer", "the server took a part without naming its ETag")
    return answer.etag
