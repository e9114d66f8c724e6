"""The sides are two endpoints: this process streams an object from one to the other, without a disk."""

import time

from msgspec.structs import replace

from rowferry.errors import RESPONSE_TOO_LONG, NotStarted, ObjectRejected
from rowferry.s3.operations import PUT_LIMIT_BYTES, get_object
from rowferry.s3.responses import Response
from rowferry_worker.copying.one_put import Put, Taken, Unconfirmed, put_whole
from rowferry_worker.copying.put_limit import GoByParts, PutLimit, is_tried
from rowferry_worker.copying.transfer import ObjectWrite, Written, transfer_parts
from rowferry_worker.multipart.completion import Large
from rowferry_worker.multipart.part_size import SMALLEST_PART_BYTES, STREAM_PART_BYTES
from rowferry_worker.multipart.streamed_parts import PartSource, PartTrust, StreamedParts
from rowferry_worker.objects.compare import md5_of
from rowferry_worker.objects.conditional_writes import WriteOperation
from rowferry_worker.objects.intents import go_on_over
from rowferry_worker.objects.memory import BodyBudget, Hold
from rowferry_worker.objects.own_copies import OwnDamage
from rowferry_worker.objects.pipe import share_of_pipe
from rowferry_worker.objects.requests import ObjectRequests

WHOLE_BYTES = 128 * 1024
"""The largest object that is taken whole: it comes with its headers, so there is nothing to overlap."""


class StreamCopy:
    """The sides are two endpoints: GET from one, PUT to the other; large objects part by part.

    Where the legacy ETag is the MD5 of the object, the production server checks it (Content-MD5) and confirms it by the
    ETag of what it has written. Once it has done so for bytes that were hashed here, nothing is hashed here any more
    until it fails to: ADR 22.
    """

    operation: WriteOperation = "PutObject"
    moves_bytes = True
    plain_copy = None

    def __init__(
        self,
        *,
        keep_class: bool = False,
        threshold_bytes: int | None = None,
        bodies: BodyBudget | None = None,
        tls_connections: int = 0,
    ) -> None:
        """`keep_class`: the sides know the same storage classes; `threshold_bytes`: larger objects go part by part.

        `bodies`: what the bodies of the process may hold; `tls_connections`: over so many of them an object passes.
        """
        self.keeps_class = keep_class
        self.damage = OwnDamage()
        self._threshold_bytes = threshold_bytes
        self._bodies = bodies or BodyBudget()
        self._tls_connections = tls_connections
        self._put_limit = PutLimit()
        self._part_trust = PartTrust()
        self._whole_bytes = min(WHOLE_BYTES, limit_part(threshold_bytes))

    @property
    def smallest_parts(self) -> int:
        """Return the size of the parts: the smallest that S3 takes, so that little is lost or sent again."""
        return min(limit_part(self._threshold_bytes), SMALLEST_PART_BYTES)

    def _part_bytes(self, seen: Response) -> int:
        """Return the size of the parts: those that come early are held for the digest of the whole, if it is known."""
        return limit_part(self._threshold_bytes) if md5_of(seen) is None else self.smallest_parts

    def part_source(self, s3: ObjectRequests, large: Large) -> PartSource:
        """Return what reads parts from one endpoint and writes them to the other."""
        source = self._stream_parts(s3, large, limit_part(self._threshold_bytes))
        source.skip_whole()
        return source

    def _stream_parts(self, s3: ObjectRequests, large: Large, read_bytes: int) -> StreamedParts:
        return StreamedParts(s3, large, read_bytes=read_bytes, bodies=self._bodies, trust=self._part_trust)

    async def transfer(self, write: ObjectWrite) -> Written:
        """Write what is read, with its digest checked at both ends."""
        return await self.damage.note(write.target.key, self._transfer(write))

    async def _transfer(self, write: ObjectWrite) -> Written:
        """Write the object in one PUT, once more and hashed where the first is not confirmed, or else by parts."""
        put = await self._put(write)
        if isinstance(put, Unconfirmed):
            if put.written_etag:  # lest our own object, if it is damaged, passes for another one: now and later
                write = write._replace(intent=go_on_over(write.intent, put.written_etag))
                self.damage.remember(write.target.key, put.written_etag)
            put = await self._put(write, is_hashed=True)
        if isinstance(put, Written):
            return put
        return await self._transfer_parts(write, await write.s3.head("legacy", write.source_key))

    async def _put(self, write: ObjectWrite, *, is_hashed: bool = False) -> Put:
        """Read the object and write it in one PUT; what came of one that goes by parts is not read.

        The record of the upload of an object above TRIED_BYTES is held meanwhile, so that no other batch sends the same
        object: one that is begun goes on by parts, and one of another batch is waited for there.
        """
        with await self._bodies.hold(tls_connections=self._tls_connections) as hold:
            taken = await self._take_in_turn(write, hold)
            if taken is None:
                return GoByParts()
            put, record = None, None
            try:
                if is_tried(taken.response.body_bytes):
                    record = await write.large_objects.records.take(write.target.key, write.source_key)
                    if record is None or record.recorded is not None:
                        return (put := GoByParts())
                put = await put_whole(write, taken, self._put_limit, keep_class=self.keeps_class, is_hashed=is_hashed)
                return put
            finally:
                _close(taken.response)
                if record is not None and not isinstance(put, GoByParts | Unconfirmed):
                    await record.end()

    async def _take_in_turn(self, write: ObjectWrite, hold: Hold) -> Taken | None:
        """Ask for an object; None where it goes by parts. A large one is asked for once more when there is room for it.

        How large it is only its headers tell, and of many large objects that are begun at once none ends for long.
        Raises NotStarted where the time budget ends before there is room.
        """
        taken = await self._take(write, hold)
        if taken is None or taken.response.stream is None or md5_of(taken.response) is None:
            return taken
        size_bytes = taken.response.body_bytes
        if size_bytes > STREAM_PART_BYTES and not hold.fits(share_of_pipe(size_bytes)):
            taken.response.stream.close()
            await hold.wait_for(share_of_pipe(size_bytes))
            if time.monotonic() >= write.large_objects.deadline:
                raise NotStarted("NotStarted", "its turn did not come")
            taken = await self._take(write, hold)
        if taken is not None:
            hold.resize(share_of_pipe(taken.response.body_bytes))
        return taken

    async def _take(self, write: ObjectWrite, hold: Hold) -> Taken | None:
        """Ask for an object; None where it does not go in one PUT, by its size and by the link."""
        read = replace(get_object("legacy", write.source_key), stream_above=self._whole_bytes)
        try:
            response = await write.s3.send(read)
        except ObjectRejected as error:
            if error.code != RESPONSE_TOO_LONG:
                raise
            return None
        limit = limit_put(self._threshold_bytes, has_md5=md5_of(response) is not None)
        if response.body_bytes <= limit and self._put_limit.allows(response.body_bytes):
            return Taken(read, response, hold)
        _close(response)
        return None

    async def _transfer_parts(self, write: ObjectWrite, seen: Response) -> Written:
        """Read and write the object part by part, with the digests of the parts and of the whole checked."""
        large, part_bytes = Large(write.source_key, seen, write.target.key), self._part_bytes(seen)
        source = self._stream_parts(write.s3, large, part_bytes)
        return await transfer_parts(write, large, source, part_bytes, keep_class=self.keeps_class)


def _close(response: Response) -> None:
    if response.stream is not None:
        response.stream.close()


def limit_part(threshold_bytes: int | None) -> int:
    """Return the most bytes of a streamed object that are read at once; larger objects go part by part."""
    return min(STREAM_PART_BYTES, threshold_bytes or STREAM_PART_BYTES)


def limit_put(threshold_bytes: int | None, *, has_md5: bool) -> int:
    """Return the most bytes that go in one PUT: an object whose MD5 is not known has to be in memory as a whole."""
    most = PUT_LIMIT_BYTES if has_md5 else STREAM_PART_BYTES
    return min(most, threshold_bytes or most)
