"""Where the parts of a large object come from: the production server copies them, or this process streams them."""

from typing import Protocol

from rowferry.errors import ObjectDamaged
from rowferry.s3.operations import upload_part, upload_part_copy
from rowferry.s3.results import read_copied_etag, read_written_etag
from rowferry_worker.objects.compare import is_encrypted, md5_of, read_range
from rowferry_worker.objects.completion import Large, Part
from rowferry_worker.objects.digests import content_md5, hash_body
from rowferry_worker.objects.memory import BodyBudget
from rowferry_worker.objects.part_digests import WholeDigest
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

    Each part is read whole and sent with Content-MD5. Without it a server may keep what came of a part that was cut
    off, filled up to its stated size, and the next attempt would take that for sent.
    """

    checks_digests = True

    def __init__(
        self,
        s3: ObjectRequests,
        large: Large,
        *,
        read_bytes: int = READ_BYTES,
        bodies: BodyBudget | None = None,
    ) -> None:
        """`read_bytes`: the most that is asked for at once; `bodies`: what the bodies of the process may hold."""
        self._s3 = s3
        self._large = large
        self._read_bytes = read_bytes
        self._bodies = bodies or BodyBudget()
        expected = md5_of(large.seen)
        self._whole = None if expected is None else WholeDigest(expected)

    def skip_whole(self) -> None:
        """Give the digest of the whole up: what an earlier attempt has sent was checked part by part, then."""
        self._whole = None

    async def send(self, upload_id: str, part: PartRange) -> Part:
        """Send one part. Raises ObjectDamaged when bytes are not what they were."""
        with await self._bodies.hold(part.size_bytes):
            sent = await self._send_whole(upload_id, part)
            if self._whole is not None:
                await self._whole.wait_for(part.last + 1)
        return sent

    async def _send_whole(self, upload_id: str, part: PartRange) -> Part:
        """Send a part, once it is read, with its digest, so that the server can check it."""
        body = await self._read(part.first, part.last)
        if self._whole is not None:
            await self._whole.add(part.first, [body])
        digest = await hash_body(body)
        target_key, headers = self._large.target_key, (content_md5(digest),)
        request = upload_part(target_key, body, upload_id=upload_id, part_number=part.number, headers=headers)
        response = await self._s3.send(request)
        etag, told = demand(read_written_etag, response, request), md5_of(response)
        if told is not None:
            self._check_part(part, digest, told)
        return Part(part.number, etag, told)

    def _check_part(self, part: PartRange, digest: str, told: str) -> None:
        if told != digest:
            raise ObjectDamaged("DigestMismatch", f"part {part.number} has MD5 {digest}, the server says {told}")

    async def check_source(self) -> None:
        """Raise ObjectDamaged where the parts do not make the legacy object; each came with the ETag first seen."""
        if self._whole is not None:
            await self._whole.check()

    async def _read(self, first: int, last: int) -> bytes:
        """Return the bytes of a part, which may take several requests."""
        key, seen, _ = self._large
        pieces: list[bytes] = []
        for begin in range(first, last + 1, self._read_bytes):
            end = min(begin + self._read_bytes - 1, last)
            pieces.append(await read_range(self._s3, "legacy", key, seen, first=begin, last=end))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
