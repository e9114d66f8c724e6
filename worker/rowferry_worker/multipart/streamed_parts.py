"""Parts of a large object that this process reads from one endpoint and writes to the other."""

from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from rowferry.errors import ObjectDamaged, ObjectRejected
from rowferry.http.pipe import Pipe
from rowferry.http.stream import BodyStream
from rowferry.s3.operations import content_md5, get_object, upload_part
from rowferry.s3.results import read_written_etag
from rowferry_worker.multipart.completion import Large, Part
from rowferry_worker.multipart.part_size import STREAM_PART_BYTES
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.objects.compare import check_range, md5_of, read_range
from rowferry_worker.objects.digests import WholeDigest, hash_body, start_md5
from rowferry_worker.objects.memory import BodyBudget
from rowferry_worker.objects.pipe import PIPE_BYTES
from rowferry_worker.objects.requests import ObjectRequests, demand


def share_of_early(size_bytes: int) -> int:
    """Return which share of the memory for bodies a part takes that is held for the digest of the whole.

    Parts that travel side by side are half read on average; where they all end together, half as much again is held.
    """
    return max(PIPE_BYTES, 2 * size_bytes // 3)


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


@dataclass(slots=True)
class PartTrust:
    """What the production server is expected to do with parts; False for good once it did not."""

    confirms: bool = True
    """Whether it tells the MD5 of a part as its ETag."""


def demands_digest(error: ObjectRejected) -> bool:
    """Return whether a server refuses a body that bears no digest, as one whose bucket has Object Lock does.

    Source: Amazon S3 User Guide, "Considerations for using Object Lock": Content-MD5 or a checksum is required.
    """
    words = str(error).lower()
    return "content-md5" in words or "x-amz-checksum" in words


class StreamedParts:
    """Reads parts from one endpoint and writes them to the other, with their digests checked at both ends.

    Parts are passed on while they are read, their MD5 computed on the way and held against the ETag told. Where that is
    something else, the part is read whole and sent once more, with Content-MD5; at a server whose ETags are no MD5, all
    others are, too.
    """

    checks_digests = True

    def __init__(
        self,
        s3: ObjectRequests,
        large: Large,
        *,
        read_bytes: int = STREAM_PART_BYTES,
        bodies: BodyBudget | None = None,
        trust: PartTrust | None = None,
    ) -> None:
        """`read_bytes`: the most that is asked for at once; `bodies`: what the bodies of the process may hold."""
        self._s3 = s3
        self._large = large
        self._read_bytes = read_bytes
        self.bodies = bodies or BodyBudget()
        self.trust = trust or PartTrust()
        expected = md5_of(large.seen)
        self._whole = None if expected is None else WholeDigest(expected)

    def skip_whole(self) -> None:
        """Give the digest of the whole up: what an earlier attempt has sent was checked part by part, then."""
        self._whole = None

    async def send(self, upload_id: str, part: PartRange) -> Part:
        """Send one part. Raises ObjectDamaged when bytes are not what they were."""
        if self.trust.confirms and part.size_bytes > PIPE_BYTES:
            with await self.bodies.hold(PIPE_BYTES if self._whole is None else share_of_early(part.size_bytes)):
                sent = await self._pipe(upload_id, part)
                if sent is not None:
                    await self._wait_for_whole(part)
                    return sent
        with await self.bodies.hold(part.size_bytes):
            sent = await self._send_whole(upload_id, part)
            await self._wait_for_whole(part)
        return sent

    async def _wait_for_whole(self, part: PartRange) -> None:
        """Wait until a part need not be held for the digest of the whole any more."""
        if self._whole is not None:
            await self._whole.wait_for(part.last + 1)

    async def _pipe(self, upload_id: str, part: PartRange) -> Part | None:
        """Pass a part on while it is read; None where the server does not confirm what it has received."""
        pipe = PartPipe(self._s3, self._large, part, self._whole)
        request = upload_part(self._large.target_key, b"", upload_id=upload_id, part_number=part.number, source=pipe)
        try:
            response = await self._s3.send(request)
        except ObjectRejected as error:
            if not demands_digest(error):
                raise
            self.trust.confirms = False  # it is sent once it is read, with Content-MD5
            return None
        finally:
            pipe.close()
        etag, told = demand(read_written_etag, response, request), md5_of(response)
        if told is None:
            self.trust.confirms = False
            return None
        return Part(part.number, etag, told) if told == pipe.digest.hexdigest() else None

    async def _send_whole(self, upload_id: str, part: PartRange) -> Part:
        """Send a part, once it is read, with its digest, so that the server can check it."""
        body = await self.read(part.first, part.last)
        if self._whole is not None:
            self._whole.add(part.first, body)
        return await self.send_body(upload_id, part, body, await hash_body(body))

    async def send_body(self, upload_id: str, part: PartRange, body: bytes, digest: str) -> Part:
        """Send a part whose MD5 is known, so that the server can check it."""
        target_key, headers = self._large.target_key, (content_md5(digest),)
        request = upload_part(target_key, body, upload_id=upload_id, part_number=part.number, headers=headers)
        response = await self._s3.send(request)
        etag, told = demand(read_written_etag, response, request), md5_of(response)
        if told not in {None, digest}:
            raise ObjectDamaged("DigestMismatch", f"part {part.number} has MD5 {digest}, the server says {told}")
        return Part(part.number, etag, told)

    async def check_source(self) -> None:
        """Raise ObjectDamaged where the parts do not make the legacy object; each came with the ETag first seen."""
        if self._whole is not None:
            await self._whole.check()

    async def read(self, first: int, last: int) -> bytes:
        """Return the bytes of a part, which may take several requests."""
        key, seen, _ = self._large
        pieces: list[bytes] = []
        for begin in range(first, last + 1, self._read_bytes):
            end = min(begin + self._read_bytes - 1, last)
            pieces.append(await read_range(self._s3, "legacy", key, seen, first=begin, last=end))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class PartPipe(Pipe):
    """A part that is written while it is read; its digest is computed on the way."""

    def __init__(self, s3: ObjectRequests, large: Large, part: PartRange, whole: WholeDigest | None) -> None:
        """`whole` is told of all bytes."""
        super().__init__(part.size_bytes)
        self._s3 = s3
        self._large = large
        self._part = part
        self._whole = whole

    async def ask(self) -> BodyStream | bytes:
        """Return the body of a GET of the part, pinned to the ETag first seen, sent once for each try of the upload.

        Raises ServerFault when the object is another by now, ObjectDamaged for other bytes than were asked for.
        """
        part, seen = self._part, self._large.seen
        read = get_object(
            "legacy", self._large.source_key, if_match=seen.etag, first_byte=part.first, last_byte=part.last
        )
        request = replace(read, stream_above=0)
        response = await self._s3.send_pinned(request, tries=1)
        try:
            check_range(seen, request, response, first=part.first, last=part.last)
        except BaseException:
            if response.stream is not None:
                response.stream.close()
            raise
        return response.stream or response.body

    def begin(self) -> None:
        """Begin with an empty digest."""
        self.digest, self._next = start_md5(), self._part.first

    def note(self, piece: bytes) -> None:
        """Take a piece into the digests."""
        self.digest.update(piece)
        if self._whole is not None:
            self._whole.add(self._next, piece)
        self._next += len(piece)
