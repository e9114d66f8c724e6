"""Where the parts of a large object come from: the production server copies them, or this process streams them."""

import asyncio
import base64
import hashlib
from typing import Protocol

from rowferry.errors import ObjectDamaged
from rowferry.s3.operations import upload_part, upload_part_copy
from rowferry.s3.results import read_copied_etag, read_written_etag
from rowferry_worker.objects.compare import is_encrypted, md5_of, read_range
from rowferry_worker.objects.completion import Large, Part
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed
from rowferry_worker.objects.side_by_side import PartRange

READ_BYTES = 8 * 1024 * 1024
"""The most that is read at once: parts are larger only where an object of over 80 GB would make too many of them."""


class PartSource(Protocol):
    """Brings the parts of one object to an upload."""

    checks_digests: bool
    """Whether the ETag of each part is held against bytes that this process has seen."""

    async def send(self, upload_id: str, part: PartRange) -> Part:
        """Send a part; several may be sent at once, if they are started in the order of their numbers."""
        ...

    async def check_source(self) -> None:
        """Raise ServerFault when the legacy object is another than when its first part was sent."""
        ...

    def skip_whole(self) -> None:
        """Give the digest of the whole up: some parts were sent by an earlier attempt."""
        ...


class CopiedParts:
    """The production server copies the parts itself."""

    checks_digests = False

    def __init__(self, s3: ObjectRequests, legacy_bucket: str, large: Large) -> None:
        """Name the bucket to copy from."""
        self._s3 = s3
        self._bucket = legacy_bucket
        self._large = large

    async def send(self, upload_id: str, part: PartRange) -> Part:
        """Have one part copied, pinned to the ETag that the first look saw."""
        request = upload_part_copy(
            self._large.target_key,
            source_bucket=self._bucket,
            source_key=self._large.source_key,
            source_etag=self._large.seen.etag or "",
            first_byte=part.first,
            last_byte=part.last,
            upload_id=upload_id,
            part_number=part.number,
        )
        response = await self._s3.send_pinned(request)
        etag = demand(read_copied_etag, response, request)
        return Part(part.number, etag, None if is_encrypted(response) else etag)

    async def check_source(self) -> None:
        """Look at the legacy object again: not every server heeds x-amz-copy-source-if-match.

        All parts are copied by now, so what is written to it later does no harm.
        """
        key, seen, _ = self._large
        now = await self._s3.head("legacy", key)
        if (now.etag, now.content_length) != (seen.etag, seen.content_length):
            raise object_changed("legacy", key)

    def skip_whole(self) -> None:
        """Do nothing: no bytes pass here."""


class StreamedParts:
    """Reads parts from one endpoint and writes them to the other, with their digests checked at both ends.

    Digests are computed on other threads.
    """

    checks_digests = True

    def __init__(self, s3: ObjectRequests, large: Large, *, read_bytes: int = READ_BYTES) -> None:
        """`read_bytes`: the most that is asked for at once."""
        self._s3 = s3
        self._large = large
        self._read_bytes = read_bytes
        expected = md5_of(large.seen)
        self._whole = None if expected is None else WholeDigest(expected)

    def skip_whole(self) -> None:
        """Give the digest of the whole up: what an earlier attempt has sent was checked part by part, then."""
        self._whole = None

    async def send(self, upload_id: str, part: PartRange) -> Part:
        """Send one part. Raises ObjectDamaged when bytes are not what they were."""
        body = await self._read(part.first, part.last)
        if self._whole is not None:
            await self._whole.add(part.number, body, is_last=part.last + 1 == self._large.seen.content_length)
        digest = await asyncio.to_thread(hashlib.md5, body, usedforsecurity=False)
        headers = (("Content-MD5", base64.b64encode(digest.digest()).decode()),)
        target_key = self._large.target_key
        request = upload_part(target_key, body, upload_id=upload_id, part_number=part.number, headers=headers)
        response = await self._s3.send(request)
        etag, told = demand(read_written_etag, response, request), md5_of(response)
        if told is not None and told != digest.hexdigest():
            words = f"part {part.number} has MD5 {digest.hexdigest()}, the server says {told}"
            raise ObjectDamaged("DigestMismatch", words)
        return Part(part.number, etag, told)

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


class WholeDigest:
    """The MD5 of an object whose parts come side by side, each added once the one before it was."""

    def __init__(self, expected: str) -> None:
        """`expected`: the legacy object's ETag, where that is its MD5."""
        self._expected = expected
        self._digest = hashlib.md5(usedforsecurity=False)
        self._next = 1
        self._turn = asyncio.Condition()

    async def add(self, number: int, body: bytes, *, is_last: bool) -> None:
        """Take a part into the digest, in its turn. Raises ObjectDamaged after the last one where it is another."""
        async with self._turn:
            await self._turn.wait_for(lambda: self._next == number)
            await asyncio.to_thread(self._digest.update, body)
            self._next += 1
            self._turn.notify_all()
        if is_last and self._digest.hexdigest() != self._expected:
            words = f"the bytes read have MD5 {self._digest.hexdigest()}, the server says {self._expected}"
            raise ObjectDamaged("DigestMismatch", words)
