"""The sides are two endpoints: this process streams an object from one to the other, without a disk."""

import logging
import time

from msgspec.structs import replace

from rowferry.errors import RESPONSE_TOO_LONG, NotFinished, NotStarted, ObjectRejected
from rowferry.s3.operations import Request, get_object
from rowferry.s3.responses import Response
from rowferry_worker.copying.one_put import InDoubt, OnePut, Taken
from rowferry_worker.copying.put_limit import MOST_BYTES, TRIED_BYTES, ByParts, PutLimit
from rowferry_worker.copying.transfer import ObjectWrite, Written, transfer_parts
from rowferry_worker.multipart.completion import Large
from rowferry_worker.multipart.copied_parts import InPlaceTrust, KnownParts, UpdatedParts
from rowferry_worker.multipart.part_size import SMALLEST_PART_BYTES, STREAM_PART_BYTES
from rowferry_worker.multipart.streamed_parts import PartSource, PartTrust, StreamedParts
from rowferry_worker.objects.compare import md5_of
from rowferry_worker.objects.conditional_writes import WriteOperation
from rowferry_worker.objects.intents import check_early, go_on_over
from rowferry_worker.objects.memory import BodyBudget, Hold
from rowferry_worker.objects.own_copies import OwnDamage
from rowferry_worker.objects.pipe import share_of_pipe
from rowferry_worker.objects.requests import ObjectRequests, demand, read_etag

WHOLE_BYTES = 128 * 1024
"""The largest object that is taken whole: it comes with its headers, so there is nothing to overlap."""

_log = logging.getLogger(__name__)


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
        self._places_trust = InPlaceTrust()
        self._whole_bytes = min(WHOLE_BYTES, limit_part(threshold_bytes))

    @property
    def smallest_parts(self) -> int:
        """Return the size of the parts: the smallest that S3 takes, so that little is lost or sent again."""
        return min(limit_part(self._threshold_bytes), SMALLEST_PART_BYTES)

    def part_bytes(self, seen: Response) -> int:
        """Return the size of the parts: those that come early are held for the digest of the whole, if it is known."""
        return limit_part(self._threshold_bytes) if md5_of(seen) is None else self.smallest_parts

    def part_source(self, s3: ObjectRequests, large: Large, known: KnownParts | None = None) -> PartSource:
        """Return what reads parts from one endpoint and writes them to the other, or copies them in place."""
        read_bytes, trust = limit_part(self._threshold_bytes), self._part_trust
        if known is None:
            source = StreamedParts(s3, large, read_bytes=read_bytes, bodies=self._bodies, trust=trust)
        else:
            source = UpdatedParts(s3, large, known, self._places_trust, read_bytes=read_bytes, bodies=self._bodies)
        source.skip_whole()
        return source

    async def transfer(self, write: ObjectWrite) -> Written:
        """Write what is read, with its digest checked at both ends."""
        return await self.damage.note(write.target.key, self._transfer_checked(write))

    async def _transfer_checked(self, write: ObjectWrite) -> Written:
        try:
            return await self._transfer(write, OnePut(write.target, write.intent, self._put_limit))
        except InDoubt as doubt:
            if doubt.written_etag:  # lest our own object, if it is damaged, passes for another one: now and later
                write = write._replace(intent=go_on_over(write.intent, doubt.written_etag))
                self.damage.remember(write.target.key, doubt.written_etag)
        return await self._transfer(write, OnePut(write.target, write.intent, self._put_limit, checks=True))

    async def _transfer(self, write: ObjectWrite, put: OnePut) -> Written:
        """Read the object and write it, in one PUT where that may be, else by parts. Raises InDoubt where `put` does.

        What came of an object that goes by parts is not read.
        """
        read = replace(get_object("legacy", write.source_key), stream_above=self._whole_bytes)
        with await self._bodies.hold(tls_connections=self._tls_connections) as hold:
            taken = await self._take_in_turn(write, read, hold)
            if taken is not None:
                try:
                    if taken.response.body_bytes <= TRIED_BYTES:
                        return await self._write(write, taken, put)
                    if written := await self._try_whole(write, taken, put):
                        return written
                finally:
                    _close(taken.response)
        return await self._transfer_parts(write, await write.s3.head("legacy", write.source_key))

    async def _take_in_turn(self, write: ObjectWrite, read: Request, hold: Hold) -> Taken | None:
        """Ask for an object; None where it goes by parts. A large one is asked for once more when there is room for it.

        How large it is only its headers tell, and of many large objects that are begun at once none ends for long.
        Raises NotStarted where the time budget ends before there is room.
        """
        response = await self._take(write.s3, read)
        if response is None:
            return None
        if response.stream is None or md5_of(response) is None:
            return Taken(read, response, hold)
        size_bytes = response.body_bytes
        if size_bytes > STREAM_PART_BYTES and not hold.fits(self._share(write, size_bytes)):
            response.stream.close()
            await hold.wait_for(lambda: self._share(write, size_bytes), expected=share_of_pipe(size_bytes))
            if time.monotonic() >= write.large_objects.deadline:
                raise NotStarted("NotStarted", "its turn did not come")
            response = await self._take(write.s3, read)
            if response is None:
                return None
        hold.resize(self._share(write, response.body_bytes), expected=share_of_pipe(response.body_bytes))
        return Taken(read, response, hold)

    def _share(self, write: ObjectWrite, size_bytes: int) -> int:
        """Return the share of the memory for bodies that an object takes by what is known now.

        An object above TRIED_BYTES is alone as long as nobody knows whether the server checks what is written: it is
        hashed here, and once it is written, no other has to be.
        """
        is_first = size_bytes > TRIED_BYTES and write.target.support.confirms_digests is None
        return self._bodies.total_bytes if is_first else share_of_pipe(size_bytes)

    async def _take(self, s3: ObjectRequests, read: Request) -> Response | None:
        """Return the response to a GET; None where the object does not go in one PUT, by its size and by the link."""
        response = await _read(s3, read)
        if response is None:
            return None
        limit = limit_put(self._threshold_bytes, has_md5=md5_of(response) is not None)
        if response.body_bytes <= limit and self._put_limit.allows(response.body_bytes):
            return response
        _close(response)
        return None

    async def _try_whole(self, write: ObjectWrite, taken: Taken, put: OnePut) -> Written | None:
        """Write an object above TRIED_BYTES in one PUT; None where it is to go by parts.

        An upload that an earlier attempt has begun goes on, and one of another batch is waited for there. The record is
        held meanwhile, so that no other batch sends the same object.
        """
        record = await write.large_objects.records.take(write.target.key, write.source_key)
        if record is None or record.recorded is not None:
            return None
        try:
            written = await self._write(write, taken, put)
        except ByParts as reason:
            _log.info("an object goes by parts, since it did not pass in one PUT", extra=_describe(write, reason))
            return None
        except InDoubt:  # it is written once more
            raise
        except NotFinished as reason:
            _log.warning("the PUT of a large object failed", extra=_describe(write, reason))
            await record.end()
            raise
        except BaseException:
            await record.end()
            raise
        await record.end()
        return written

    async def _write(self, write: ObjectWrite, taken: Taken, put: OnePut) -> Written:
        """Write the object whose headers, at least, have come."""
        s3, seen, properties = write.s3, taken.response, write.properties
        if seen.body_bytes > STREAM_PART_BYTES:  # a server may read it all before it refuses it
            await check_early(write.target, write.intent)
        demand(read_etag, seen, taken.read)
        await s3.refuse_web_server(taken.read, seen)
        await put.take_body(taken)
        described = await properties.describe(s3, write.source_key, seen, "PutObject", keep_class=self.keeps_class)
        started = time.monotonic()
        etag = await put.write(described.headers)
        self._put_limit.note(seen.body_bytes, time.monotonic() - started)
        await properties.settle(s3, write.target.key, described, "PutObject")
        return Written(seen.body_bytes, "PutObject", etag, seen.etag or "")

    async def _transfer_parts(self, write: ObjectWrite, seen: Response) -> Written:
        """Read and write the object part by part, with the digests of the parts and of the whole checked."""
        large, part_bytes = Large(write.source_key, seen, write.target.key), self.part_bytes(seen)
        source = StreamedParts(write.s3, large, read_bytes=part_bytes, bodies=self._bodies, trust=self._part_trust)
        return await transfer_parts(write, large, source, part_bytes, keep_class=self.keeps_class)


async def _read(s3: ObjectRequests, read: Request) -> Response | None:
    """Return the response to a GET; None where the object is longer than the client takes."""
    try:
        return await s3.send(read)
    except ObjectRejected as error:
        if error.code != RESPONSE_TOO_LONG:
            raise
        return None


def _describe(write: ObjectWrite, reason: Exception) -> dict[str, str]:
    return {"old_key": write.source_key, "new_key": write.target.key, "reason": str(reason)}


def _close(response: Response) -> None:
    if response.stream is not None:
        response.stream.close()


def limit_part(threshold_bytes: int | None) -> int:
    """Return the most bytes of a streamed object that are read at once; larger objects go part by part."""
    return min(STREAM_PART_BYTES, threshold_bytes or STREAM_PART_BYTES)


def limit_put(threshold_bytes: int | None, *, has_md5: bool) -> int:
    """Return the most bytes that go in one PUT: an object whose MD5 is not known has to be in memory as a whole."""
    most = MOST_BYTES if has_md5 else STREAM_PART_BYTES
    return min(most, threshold_bytes or most)
