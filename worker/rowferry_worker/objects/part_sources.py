"""Where the parts of a large object come from: the production server copies them, or this process streams them."""

from collections.abc import Sequence
from typing import Protocol

from rowferry.errors import ObjectDamaged, ObjectRejected
from rowferry.s3.operations import upload_part, upload_part_copy
from rowferry.s3.results import read_copied_etag, read_written_etag
from rowferry_worker.objects.compare import is_encrypted, md5_of, read_range
from rowferry_worker.objects.completion import Large, Part
from rowferry_worker.objects.digests import content_md5, hash_body
from rowferry_worker.objects.memory import BodyBudget
from rowferry_worker.objects.part_digests import WholeDigest
from rowferry_worker.objects.part_pipe import PipedPart
from rowferry_worker.objects.pipe import PIPE_BYTES
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed
from rowferry_worker.objects.side_by_side import PartRange

READ_BYTES = 8 * 1024 * 1024
"""The most that is read at once: parts are larger only where an object of over 80 GB would make too many of them."""


class PartSource(Protocol):
    """Brings the parts of one object to an upload."""

    checks_digests: bool
    """Whether the ETag of each part is held against bytes that this process has seen."""

    async def send(self, upload_id: str, part: PartRange, listed: str | None = None) -> Part:
        """Send a part; several may be sent at once, if they are started in the order of their numbers.

        `listed`: the ETag of what the server holds under its number, in the right size; it may be that part.
        """
        ...

    async def check_source(self) -> None:
        """Raise ServerFault when the legacy object is another than when its first part was sent."""
        ...

    def skip_whole(self) -> None:
        """Give the digest of the whole up: some parts were sent by an earlier attempt."""
        ...


_BEYOND_THE_END = frozenset({"InvalidArgument", "InvalidRange"})
"""Error codes by which a server may say that a legacy object has become shorter than the part that is to be copied."""


class CopiedParts:
    """The production server copies the parts itself."""

    checks_digests = False

    def __init__(
        self, s3: ObjectRequests, legacy_bucket: str, large: Large, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Name the bucket to copy from; `headers` go with each part."""
        self._s3 = s3
        self._bucket = legacy_bucket
        self._large = large
        self._headers = headers

    async def send(self, upload_id: str, part: PartRange, listed: str | None = None) -> Part:
        """Have one part copied, pinned to the ETag that the first look saw."""
        del listed
        request = upload_part_copy(
            self._large.target_key,
            source_bucket=self._bucket,
            source_key=self._large.source_key,
            source_etag=self._large.seen.etag or "",
            first_byte=part.first,
            last_byte=part.last,
            upload_id=upload_id,
            part_number=part.number,
            headers=self._headers,
        )
        try:
            response = await self._s3.send_pinned(request)
        except ObjectRejected as error:
            if error.code in _BEYOND_THE_END:
                await self.check_source()
            raise
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


class PartTrust:
    """Whether the ETag of a part is its MD5, at the production server."""

    def __init__(self) -> None:
        """Expect that it is."""
        self.confirms = True
        """False for good once it was not."""


class StreamedParts:
    """Reads parts from one endpoint and writes them to the other, with their digests checked at both ends.

    Parts are passed on while they are read, their MD5 computed on the way and held against the ETag told. Where that is
    something else, the part is read whole and sent once more, with Content-MD5; at a server whose ETags are no MD5, all
    others are, too. What a server lists as sent may be the rest of a part that was cut off: it is read and compared.
    """

    checks_digests = True

    def __init__(
        self,
        s3: ObjectRequests,
        large: Large,
        *,
        read_bytes: int = READ_BYTES,
        bodies: BodyBudget | None = None,
        trust: PartTrust | None = None,
    ) -> None:
        """`read_bytes`: the most that is asked for at once; `bodies`: what the bodies of the process may hold."""
        self._s3 = s3
        self._large = large
        self._read_bytes = read_bytes
        self._bodies = bodies or BodyBudget()
        self._trust = trust or PartTrust()
        expected = md5_of(large.seen)
        self._whole = None if expected is None else WholeDigest(expected)

    def skip_whole(self) -> None:
        """Give the digest of the whole up: what an earlier attempt has sent was checked part by part, then."""
        self._whole = None

    async def send(self, upload_id: str, part: PartRange, listed: str | None = None) -> Part:
        """Send one part, unless `listed` is its MD5. Raises ObjectDamaged when bytes are not what they were."""
        if self._trust.confirms and listed is None and part.size_bytes > PIPE_BYTES:
            with await self._bodies.hold(PIPE_BYTES if self._whole is None else part.size_bytes):
                sent = await self._pipe(upload_id, part)
                if sent is not None:
                    await self._wait_for_whole(part)
                    return sent
        with await self._bodies.hold(part.size_bytes):
            sent = await self._send_whole(upload_id, part, listed)
            await self._wait_for_whole(part)
        return sent

    async def _wait_for_whole(self, part: PartRange) -> None:
        """Wait until a part need not be held for the digest of the whole any more."""
        if self._whole is not None:
            await self._whole.wait_for(part.last + 1)

    async def _pipe(self, upload_id: str, part: PartRange) -> Part | None:
        """Pass a part on while it is read; None where the server does not confirm what it has received."""
        pipe = PipedPart(self._s3, self._large, part, self._whole)
        request = upload_part(self._large.target_key, b"", upload_id=upload_id, part_number=part.number, source=pipe)
        try:
            response = await self._s3.send(request)
        finally:
            pipe.close()
        etag, told = demand(read_written_etag, response, request), md5_of(response)
        if told is None:
            self._trust.confirms = False
            return None
        is_confirmed = pipe.has_read_all and told == await pipe.digest.read()
        return Part(part.number, etag, told) if is_confirmed else None

    async def _send_whole(self, upload_id: str, part: PartRange, listed: str | None) -> Part:
        """Send a part, once it is read, with its digest, so that the server can check it; not if `listed` is that."""
        body = await self._read(part.first, part.last)
        if self._whole is not None:
            await self._whole.add(part.first, [body])
        digest = await hash_body(body)
        if listed is not None and digest == listed:
            return Part(part.number, listed, listed)
        return await self._send_body(upload_id, part, body, digest)

    async def _send_body(self, upload_id: str, part: PartRange, body: bytes, digest: str) -> Part:
        """Send a part whose MD5 is known, so that the server can check it."""
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
