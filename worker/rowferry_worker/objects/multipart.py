"""Objects too large for one request: a multipart upload, each part pinned to the ETag that the first look saw."""

import asyncio
import base64
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from rowferry.errors import ObjectDamaged, ObjectError, ObjectRejected
from rowferry.s3.operations import abort_multipart_upload, create_multipart_upload, upload_part, upload_part_copy
from rowferry.s3.results import read_copied_etag, read_upload_id, read_written_etag
from rowferry_worker.objects.compare import is_encrypted, md5_of, read_range
from rowferry_worker.objects.completion import Large, Part, Upload, complete_upload
from rowferry_worker.objects.conditional_writes import WriteGuard
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed, size_of

MAX_PARTS = 10_000
"""Source: Amazon S3 User Guide, "Multipart upload limits"."""
READ_BYTES = 8 * 1024 * 1024
"""The most that is read at once: parts are larger only where an object of over 80 GB would make too many of them."""
ABORT_WITHIN = timedelta(seconds=3)
"""How long the abort of an upload may take whose copy is cancelled."""


class PartSource(Protocol):
    """Brings the parts of one object to an upload."""

    checks_digests: bool
    """Whether the ETag of each part is held against bytes that this process has seen."""

    async def send(self, upload_id: str, number: int, first: int, last: int) -> Part:
        """Send part `number` (from 1), the bytes from `first` to `last`, both included."""
        ...

    async def check_source(self) -> None:
        """Raise ServerFault when the legacy object is another than when its first part was sent."""
        ...


async def send_in_parts(
    s3: ObjectRequests,
    large: Large,
    headers: list[tuple[str, str]],
    source: PartSource,
    *,
    part_bytes: int,
    guard: WriteGuard,
) -> None:
    """Write an object part by part; one part is in memory at a time.

    An upload that fails or is cancelled is aborted, so that nothing of it stays behind, unless it may be completed by
    now.
    """
    if not size_of(large.seen):
        raise ObjectRejected("EmptyUpload", "an empty object has no parts")
    await guard.look_early()
    begin = create_multipart_upload(large.target_key, headers=headers)
    upload = Upload(large, demand(read_upload_id, await s3.send(begin), begin), source.checks_digests)
    try:
        for number, first, last in split_range(size_of(large.seen), part_bytes):
            upload.parts.append(await source.send(upload.id, number, first, last))
        await source.check_source()
        await complete_upload(s3, upload, guard)
    except BaseException as error:
        if not upload.may_be_completed:
            await _abort(s3, upload, hurry=isinstance(error, asyncio.CancelledError))
        raise


def split_range(size_bytes: int, wanted_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number of each part and the first and last byte of it, both included."""
    part_bytes = part_size(size_bytes, wanted_bytes)
    for number, first in enumerate(range(0, size_bytes, part_bytes), 1):
        yield number, first, min(first + part_bytes, size_bytes) - 1


def part_size(size_bytes: int, wanted_bytes: int) -> int:
    """Return the size of a part: `wanted_bytes`, or more where that would make over 10,000 parts."""
    return max(wanted_bytes, -(-size_bytes // MAX_PARTS))


async def _abort(s3: ObjectRequests, upload: Upload, *, hurry: bool) -> None:
    """Abort an upload, as far as the server lets us, also when the copy is cancelled meanwhile."""
    abort = asyncio.ensure_future(_send_abort(s3, upload))
    seconds = ABORT_WITHIN.total_seconds()
    try:
        await asyncio.wait([abort], timeout=seconds if hurry else None)
    except asyncio.CancelledError:
        await asyncio.wait([abort], timeout=seconds)
        raise
    finally:
        abort.cancel()  # does nothing where it has ended


async def _send_abort(s3: ObjectRequests, upload: Upload) -> None:
    with suppress(ObjectError):
        await s3.send(abort_multipart_upload(upload.large.target_key, upload_id=upload.id))


class CopiedParts:
    """The production server copies the parts itself."""

    checks_digests = False

    def __init__(self, s3: ObjectRequests, legacy_bucket: str, large: Large) -> None:
        """Name the bucket to copy from."""
        self._s3 = s3
        self._bucket = legacy_bucket
        self._large = large

    async def send(self, upload_id: str, number: int, first: int, last: int) -> Part:
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
        response = await self._s3.send_pinned(request)
        etag = demand(read_copied_etag, response, request)
        return Part(number, etag, None if is_encrypted(response) else etag)

    async def check_source(self) -> None:
        """Look at the legacy object again: not every server heeds x-amz-copy-source-if-match.

        All parts are copied by now, so what is written to it later does no harm.
        """
        key, seen, _ = self._large
        now = await self._s3.head("legacy", key)
        if (now.etag, now.content_length) != (seen.etag, seen.content_length):
            raise object_changed("legacy", key)


class StreamedParts:
    """Reads parts from one endpoint and writes them to the other, with their digests checked at both ends."""

    checks_digests = True

    def __init__(self, s3: ObjectRequests, large: Large, *, read_bytes: int = READ_BYTES) -> None:
        """`read_bytes`: the most that is asked for at once."""
        self._s3 = s3
        self._large = large
        self._read_bytes = read_bytes
        self._whole = hashlib.md5(usedforsecurity=False)

    async def send(self, upload_id: str, number: int, first: int, last: int) -> Part:
        """Send one part, in order. Raises ObjectDamaged when bytes are not what they were."""
        body = await self._read(first, last)
        self._check_read(body, is_last=last + 1 == self._large.seen.content_length)
        digest = hashlib.md5(body, usedforsecurity=False)
        headers = (("Content-MD5", base64.b64encode(digest.digest()).decode()),)
        target_key = self._large.target_key
        request = upload_part(target_key, body, upload_id=upload_id, part_number=number, headers=headers)
        response = await self._s3.send(request)
        etag, told = demand(read_written_etag, response, request), md5_of(response)
        if told is not None and told != digest.hexdigest():
            raise ObjectDamaged("DigestMismatch", f"part {number} has MD5 {digest.hexdigest()}, the server says {told}")
        return Part(number, etag, told)

    async def check_source(self) -> None:
        """Do nothing: each range came with the ETag that the first look saw."""

    async def _read(self, first: int, last: int) -> bytes:
        """Return the bytes of a part, which may take several requests."""
        key, seen, _ = self._large
        pieces: list[bytes] = []
        for begin in range(first, last + 1, self._read_bytes):
            end = min(begin + self._read_bytes - 1, last)
            pieces.append(await read_range(self._s3, "legacy", key, seen, first=begin, last=end))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _check_read(self, body: bytes, *, is_last: bool) -> None:
        """Take a part into the digest of the whole; at the end, hold it against the legacy ETag where that is one."""
        self._whole.update(body)
        expected = md5_of(self._large.seen)
        if is_last and expected is not None and expected != self._whole.hexdigest():
            words = f"the bytes read have MD5 {self._whole.hexdigest()}, the server says {expected}"
            raise ObjectDamaged("DigestMismatch", words)
