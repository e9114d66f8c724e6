"""Objects too large for one request: a multipart upload, each part pinned to the ETag that the first look saw."""

import base64
import hashlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

from rowferry.errors import ObjectDamaged, ObjectError, ObjectRejected
from rowferry.s3.operations import abort_multipart_upload, create_multipart_upload, upload_part, upload_part_copy
from rowferry.s3.responses import Answer
from rowferry.s3.results import read_copied_etag, read_upload_id, read_written_etag
from rowferry_worker.objects.compare import is_encrypted, md5_of
from rowferry_worker.objects.completion import Part, Upload, complete_upload
from rowferry_worker.objects.conditional_writes import Guard
from rowferry_worker.objects.journey import Steps, ask, ask_pinned, changed, demand, head, size_of
from rowferry_worker.objects.reading import read_range

MAX_PARTS = 10_000
"""Source: Amazon S3 User Guide, "Multipart upload limits"."""

READ_BYTES = 8 * 1024 * 1024
"""The most that is read at once: parts are larger only where an object of over 80 GB would make too many of them."""


class Sender(Protocol):
    """Brings the parts of one object to an upload."""

    checks_digests: bool
    """Whether the ETag of each part is held against bytes that this process has seen."""

    def send(self, upload_id: str, number: int, first: int, last: int) -> Steps[Part]:
        """Send part `number` (from 1), the bytes from `first` to `last`, both included."""
        ...

    def check_source(self) -> Steps[None]:
        """Raise ServerFault when the legacy object is another than when its first part was sent."""
        ...


class Large(NamedTuple):
    """An object that goes part by part."""

    source_key: str
    seen: Answer
    """The legacy object's HEAD."""
    target_key: str


def send_in_parts(
    large: Large, headers: list[tuple[str, str]], sender: Sender, *, part_bytes: int, guard: Guard
) -> Steps[None]:
    """Write an object part by part; one part is in memory at a time.

    An upload that fails is aborted, so that nothing of it stays behind, unless it may be completed by now.
    """
    if not size_of(large.seen):
        raise ObjectRejected("EmptyUpload", "an empty object has no parts")
    yield from guard.look_early()
    begin = create_multipart_upload(large.target_key, headers=headers)
    upload_id = demand(read_upload_id, (yield from ask(begin)), begin)
    try:
        parts = yield from _send_all(upload_id, size_of(large.seen), part_bytes, sender.send)
        yield from sender.check_source()
    except ObjectError:
        yield abort_multipart_upload(large.target_key, upload_id=upload_id)
        raise
    upload = Upload(*large, upload_id, parts, sender.checks_digests)
    yield from complete_upload(upload, guard)


def part_size(size_bytes: int, wanted_bytes: int) -> int:
    """Return the size of a part: `wanted_bytes`, or more where that would make over 10,000 parts."""
    return max(wanted_bytes, -(-size_bytes // MAX_PARTS))


class CopiedParts:
    """The production server copies the parts itself."""

    checks_digests = False

    def __init__(self, legacy_bucket: str, large: Large) -> None:
        """Name the bucket to copy from."""
        self._bucket = legacy_bucket
        self._large = large

    def send(self, upload_id: str, number: int, first: int, last: int) -> Steps[Part]:
        """Have one part copied, pinned to the ETag that the first look saw."""
        request = upload_part_copy(
            self._large.target_key,
            source_bucket=self._bucket,
            source_key=self._large.source_key,
            source_etag=self._large.seen.etag or "",
            first_byte=first,
            last_byte=last,
            upload_id=upload_id,
            part_number=number,
        )
        answer = yield from ask_pinned(request)
        etag = demand(read_copied_etag, answer, request)
        return Part(number, etag, None if is_encrypted(answer) else etag)

    def check_source(self) -> Steps[None]:
        """Look at the legacy object again: not every server heeds x-amz-copy-source-if-match.

        All parts are copied by now, so what is written to it later does no harm.
        """
        key, seen, _ = self._large
        now = yield from head("legacy", key)
        if (now.etag, now.content_length) != (seen.etag, seen.content_length):
            raise changed("legacy", key)


class StreamedParts:
    """Reads parts from one endpoint and writes them to the other, with their digests checked at both ends."""

    checks_digests = True

    def __init__(self, large: Large, *, read_bytes: int = READ_BYTES) -> None:
        """`read_bytes`: the most that is asked for at once."""
        self._large = large
        self._read_bytes = read_bytes
        self._whole = hashlib.md5(usedforsecurity=False)

    def send(self, upload_id: str, number: int, first: int, last: int) -> Steps[Part]:
        """Send one part, in order. Raises ObjectDamaged when bytes are not what they were."""
        key, seen, target_key = self._large
        pieces: list[bytes] = []
        for begin in range(first, last + 1, self._read_bytes):
            end = min(begin + self._read_bytes - 1, last)
            pieces.append((yield from read_range("legacy", key, seen, begin, end)))
        body = pieces.pop() if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._check_read(body, is_last=last + 1 == seen.content_length)
        digest = hashlib.md5(body, usedforsecurity=False)
        headers = (("Content-MD5", base64.b64encode(digest.digest()).decode()),)
        request = upload_part(target_key, body, upload_id=upload_id, part_number=number, headers=headers)
        sent = yield from ask(request)
        etag, told = demand(read_written_etag, sent, request), md5_of(sent)
        if told is not None and told != digest.hexdigest():
            raise ObjectDamaged("DigestMismatch", f"part {number} has MD5 {digest.hexdigest()}, the server says {told}")
        return Part(number, etag, told)

    def check_source(self) -> Steps[None]:
        """Do nothing: each range came with the ETag that the first look saw."""
        yield from ()

    def _check_read(self, body: bytes, *, is_last: bool) -> None:
        """Take a part into the digest of the whole; at the end, hold it against the legacy ETag where that is one."""
        self._whole.update(body)
        expected = md5_of(self._large.seen)
        if is_last and expected is not None and expected != self._whole.hexdigest():
            words = f"the bytes read have MD5 {self._whole.hexdigest()}, the server says {expected}"
            raise ObjectDamaged("DigestMismatch", words)


def _send_all(
    upload_id: str, size_bytes: int, wanted_bytes: int, send: Callable[[str, int, int, int], Steps[Part]]
) -> Steps[list[Part]]:
    parts: list[Part] = []
    part_bytes = part_size(size_bytes, wanted_bytes)
    for number, first in enumerate(range(0, size_bytes, part_bytes), 1):
        last = min(first + part_bytes, size_bytes) - 1
        parts.append((yield from send(upload_id, number, first, last)))
    return parts
