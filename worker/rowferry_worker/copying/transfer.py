"""The two methods of copying: the production server copies an object, or this process streams it, without a disk."""

import time
from functools import partial
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from rowferry.errors import RESPONSE_TOO_LONG, ObjectError, ObjectRejected
from rowferry.s3.operations import REQUESTER_PAYS, Request, copy_object, get_object
from rowferry.s3.responses import Response
from rowferry.s3.results import read_copied_etag
from rowferry.s3.retry import TRIES
from rowferry_worker.copying.one_put import InDoubt, OnePut, PutLimit, Taken
from rowferry_worker.multipart.completion import Large
from rowferry_worker.multipart.copied_parts import CopiedParts, InPlaceTrust, KnownParts, UpdatedParts
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.part_size import COPY_PART_BYTES, SMALLEST_PART_BYTES, STREAM_PART_BYTES
from rowferry_worker.multipart.streamed_parts import PartSource, PartTrust, StreamedParts
from rowferry_worker.multipart.upload import send_in_parts
from rowferry_worker.objects.compare import md5_of
from rowferry_worker.objects.conditional_writes import WriteGuard, WriteOperation
from rowferry_worker.objects.memory import BodyBudget
from rowferry_worker.objects.own_copies import DamagedWrite, OwnDamage
from rowferry_worker.objects.requests import (
    DemandingObject,
    GivenBy,
    ObjectRequests,
    demand,
    object_changed,
    read_etag,
    size_of,
)
from rowferry_worker.properties.settle import Description, Properties

COPY_LIMIT_BYTES = 5 * 1024**3
"""The most that CopyObject copies. Source: Amazon S3 API Reference, "CopyObject"."""
ONE_PUT_BYTES = 100 * 1024 * 1024
"""The largest object that is piped through in one PUT, which nothing has to be hashed for; of larger ones, a failure
costs a part only. Source: Amazon S3 User Guide, "Multipart upload overview": by parts from 100 MB on."""
WHOLE_BYTES = 128 * 1024
"""The largest object that is taken whole: it comes with its headers, so there is nothing to overlap."""
UPLOAD: GivenBy = "CreateMultipartUpload"


class ObjectWrite(NamedTuple):
    """An object that is to be written."""

    s3: ObjectRequests
    source_key: str
    target_key: str
    guard: WriteGuard
    properties: Properties
    large_objects: LargeObjects


class Written(NamedTuple):
    """An object that was written."""

    size_bytes: int
    """As far as known, else 0: a server does not tell what it copied."""
    operation: WriteOperation
    """What put it in its place."""
    etag: str = ""
    """As the server told it, unquoted."""
    source_etag: str = ""
    """Of the legacy object that was copied, unquoted; empty where the server copied it and did not have to say."""


class CopyMethod(Protocol):
    """How a legacy object comes to its production key, with its properties and those of the plan."""

    operation: WriteOperation
    """The S3 operation that writes objects of an ordinary size."""
    moves_bytes: bool
    """Whether the bytes pass through this process."""
    keeps_class: bool
    """Whether the production server knows the storage classes of the legacy one."""
    damage: OwnDamage
    """What its writes have left damaged."""

    @property
    def smallest_parts(self) -> int:
        """Return the size of the parts, in bytes, unless the object would have too many of them."""
        ...

    def part_bytes(self, seen: Response) -> int:
        """Return the size in bytes of the parts by which `transfer` writes an object, by its headers; see part_size."""
        ...

    def part_source(self, s3: ObjectRequests, large: Large, known: KnownParts | None = None) -> PartSource:
        """Return what brings parts of an object; other processes may bring others.

        `known`: of the production object that is to be replaced, the parts that may be copied in place.
        """
        ...

    async def transfer(self, write: ObjectWrite) -> Written:
        """Write the production object.

        Raises ObjectNotFound when there is no legacy object; PreconditionFailed (ObjectExists, where it was seen) when
        an object is at the production key that the guard keeps; any other ObjectError as it comes.
        """
        ...


class ServerCopy:
    """Both sides are one endpoint: CopyObject, or UploadPartCopy where the object is too large for it."""

    operation: WriteOperation = "CopyObject"
    moves_bytes = False
    keeps_class = True

    def __init__(self, legacy_bucket: str, threshold_bytes: int | None = None, *, requester_pays: bool = False) -> None:
        """Name the bucket to copy from; `threshold_bytes`: larger objects go part by part, None: the server decides.

        `requester_pays`: the legacy bucket demands that.
        """
        self.damage = OwnDamage()
        self._bucket = legacy_bucket
        self._threshold_bytes = threshold_bytes
        self._source_headers = [REQUESTER_PAYS] if requester_pays else []

    @property
    def smallest_parts(self) -> int:
        """Return the size of the parts: they cost this process nothing, so few are best."""
        return min(COPY_PART_BYTES, self._threshold_bytes or COPY_PART_BYTES)

    def part_bytes(self, seen: Response) -> int:
        """Return the size of the parts."""
        del seen
        return self.smallest_parts

    def part_source(self, s3: ObjectRequests, large: Large, known: KnownParts | None = None) -> PartSource:
        """Return what has parts copied. No byte passes here, so nothing is gained by what is known."""
        del known
        return CopiedParts(s3, self._bucket, large, self._source_headers)

    async def transfer(self, write: ObjectWrite) -> Written:
        """Ask the production server for a copy."""
        return await self.damage.note(write.target_key, self._transfer(write))

    async def _transfer(self, write: ObjectWrite) -> Written:
        seen = None
        if self._threshold_bytes is not None or write.properties.need_metadata:
            seen = await write.s3.head("legacy", write.source_key)
            if self._threshold_bytes is not None and size_of(seen) > self._threshold_bytes:
                return await self._transfer_parts(write, seen)
        try:
            described, etag, copied = await self._copy(write, seen)
        except ObjectError as error:
            if error.code not in {"EntityTooLarge", "InvalidRequest"}:
                raise
            seen = await write.s3.head("legacy", write.source_key)
            if not _is_too_large(error, size_of(seen)):
                raise
        else:
            await write.properties.settle(write.s3, write.target_key, described, "CopyObject")
            return Written(0, "CopyObject", etag, copied)
        return await self._transfer_parts(write, seen)

    async def _copy(self, write: ObjectWrite, seen: Response | None) -> tuple[Description, str, str]:
        """Have an object copied; return what it shall be, its ETag and that of its source.

        The last is empty where it is not known. Where the request tells the metadata, it is pinned to the object that
        has them. Not every server heeds that: if it has copied a later one, the copy is repeated with the metadata of
        that.
        """
        s3, source_key, properties = write.s3, write.source_key, write.properties
        pinned = seen if properties.need_metadata else None
        for _ in range(TRIES):
            described = await properties.describe_copy(s3, source_key, pinned)
            build = partial(
                copy_object,
                write.target_key,
                source_bucket=self._bucket,
                source_key=source_key,
                source_etag=pinned and pinned.etag,
                headers=[*self._source_headers, *described.headers],
            )
            etag, _ = await write.guard.write("CopyObject", build, read_copied_etag)
            if pinned is None or etag == pinned.etag:
                return described, etag, etag if pinned is not None else ""
            now = await s3.head("legacy", source_key)
            if now.etag == pinned.etag:
                return described, etag, now.etag or ""
            write.guard.note_written(etag)
            pinned = now
        raise object_changed("legacy", source_key)

    async def _transfer_parts(self, write: ObjectWrite, seen: Response) -> Written:
        """Have the server copy the object part by part, each pinned to the ETag first seen, and look at the whole."""
        large = Large(write.source_key, seen, write.target_key)
        source = self.part_source(write.s3, large)
        return await _send_parts(write, large, source, self.smallest_parts, keep_class=True)


class StreamCopy:
    """The sides are two endpoints: GET from one, PUT to the other; large objects part by part.

    Where the legacy ETag is the MD5 of the object, the production server checks it (Content-MD5) and confirms it by the
    ETag of what it has written. Once it has done so for bytes that were hashed here, nothing is hashed here any more
    until it fails to: ADR 22.
    """

    operation: WriteOperation = "PutObject"
    moves_bytes = True

    def __init__(
        self, *, keep_class: bool = False, threshold_bytes: int | None = None, bodies: BodyBudget | None = None
    ) -> None:
        """`keep_class`: the sides know the same storage classes; `threshold_bytes`: larger objects go part by part.

        `bodies`: what the bodies of the process may hold.
        """
        self.keeps_class = keep_class
        self.damage = OwnDamage()
        self._threshold_bytes = threshold_bytes
        self._bodies = bodies or BodyBudget()
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
        return await self.damage.note(write.target_key, self._transfer_checked(write))

    async def _transfer_checked(self, write: ObjectWrite) -> Written:
        s3, target_key, guard = write.s3, write.target_key, write.guard
        try:
            return await self._transfer(write, OnePut(s3, target_key, guard, checks=not guard.may_trust_digests))
        except InDoubt as doubt:
            if doubt.written_etag:  # lest our own object, if it is damaged, passes for another one
                guard.note_written(doubt.written_etag)
        return await self._transfer(write, OnePut(s3, target_key, guard, checks=True))

    async def _transfer(self, write: ObjectWrite, put: OnePut) -> Written:
        """Read the object and write it, in one PUT where that may be. Raises InDoubt where `put` does."""
        read = replace(get_object("legacy", write.source_key), stream_above=self._whole_bytes)
        with await self._bodies.hold() as hold:
            response = await _read(write.s3, read)
            if response is not None:
                try:
                    limit = limit_put(self._threshold_bytes, has_md5=md5_of(response) is not None)
                    if response.body_bytes <= limit and self._put_limit.allows(response.body_bytes):
                        if response.body_bytes > STREAM_PART_BYTES:  # a server may read it all before it refuses it
                            await put.guard.look_early()
                        return await self._write(write, Taken(read, response, hold), put)
                finally:
                    if response.stream is not None:
                        response.stream.close()
        return await self._transfer_parts(write, await write.s3.head("legacy", write.source_key))

    async def _write(self, write: ObjectWrite, taken: Taken, put: OnePut) -> Written:
        """Write the object whose headers, at least, have come."""
        s3, seen, properties = write.s3, taken.response, write.properties
        demand(read_etag, seen, taken.read)
        await s3.refuse_web_server(taken.read, seen)
        await put.take_body(taken)
        described = await properties.describe(s3, write.source_key, seen, "PutObject", keep_class=self.keeps_class)
        started = time.monotonic()
        etag = await put.write(described.headers)
        self._put_limit.note(seen.body_bytes, time.monotonic() - started)
        await properties.settle(s3, write.target_key, described, "PutObject")
        return Written(seen.body_bytes, "PutObject", etag, seen.etag or "")

    async def _transfer_parts(self, write: ObjectWrite, seen: Response) -> Written:
        """Read and write the object part by part, with the digests of the parts and of the whole checked."""
        large, part_bytes = Large(write.source_key, seen, write.target_key), self.part_bytes(seen)
        source = StreamedParts(write.s3, large, read_bytes=part_bytes, bodies=self._bodies, trust=self._part_trust)
        return await _send_parts(write, large, source, part_bytes, keep_class=self.keeps_class)


async def _send_parts(
    write: ObjectWrite, large: Large, source: PartSource, part_bytes: int, *, keep_class: bool
) -> Written:
    """Write the object by parts from a source, and see to its properties."""
    s3, guard, large_objects = write.s3, write.guard, write.large_objects
    described = await write.properties.describe(s3, large.source_key, large.seen, UPLOAD, keep_class=keep_class)
    told = await send_in_parts(
        s3, large, described.headers, source, part_bytes=part_bytes, guard=guard, large_objects=large_objects
    )
    written = await look_at_completed(s3, large, told)
    await write.properties.settle(s3, large.target_key, described, UPLOAD, written)
    return Written(size_of(written), "CompleteMultipartUpload", written.etag or "", large.seen.etag or "")


async def look_at_completed(s3: ObjectRequests, large: Large, told: str | None) -> Response:
    """Return the HEAD of an object that was completed; `told`: the ETag that the server told of it.

    A completion is answered early, and its ETag is made of what was asked for. Raises DamagedWrite where the object
    has another size, ServerFault where there is none.
    """
    with DemandingObject():
        written = await s3.head("production", large.target_key)
    if size_of(written) != size_of(large.seen):
        sizes = f"{size_of(written)} bytes stand there, {size_of(large.seen)} were copied"
        raise DamagedWrite.named("SizeMismatch", sizes, told if told and told == written.etag else "")
    return written


async def _read(s3: ObjectRequests, read: Request) -> Response | None:
    """Return the response to a GET; None where the object is longer than the client takes."""
    try:
        return await s3.send(read)
    except ObjectRejected as error:
        if error.code != RESPONSE_TOO_LONG:
            raise
        return None


def _is_too_large(refusal: ObjectError, size_bytes: int) -> bool:
    """Return whether CopyObject was refused for the object's size: InvalidRequest has a hundred other reasons."""
    return size_bytes > (0 if refusal.code == "EntityTooLarge" else COPY_LIMIT_BYTES)


def limit_part(threshold_bytes: int | None) -> int:
    """Return the most bytes of a streamed object that are read at once; larger objects go part by part."""
    return min(STREAM_PART_BYTES, threshold_bytes or STREAM_PART_BYTES)


def limit_put(threshold_bytes: int | None, *, has_md5: bool) -> int:
    """Return the most bytes that go in one PUT: an object whose MD5 is not known has to be in memory as a whole."""
    most = ONE_PUT_BYTES if has_md5 else STREAM_PART_BYTES
    return min(most, threshold_bytes or most)
