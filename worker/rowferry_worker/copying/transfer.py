"""How an object is brought to its production key: the contract of both methods, and what they share."""

from typing import NamedTuple, Protocol

from rowferry.s3.responses import Response
from rowferry_worker.multipart.completion import Large
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.streamed_parts import PartSource
from rowferry_worker.multipart.upload import send_in_parts
from rowferry_worker.objects.conditional_writes import WriteOperation
from rowferry_worker.objects.intents import Intent, Target
from rowferry_worker.objects.own_copies import DamagedWrite, OwnDamage
from rowferry_worker.objects.requests import DemandingObject, GivenBy, ObjectRequests, size_of
from rowferry_worker.properties.settle import Properties

UPLOAD: GivenBy = "CreateMultipartUpload"


class ObjectWrite(NamedTuple):
    """An object that is to be written."""

    source_key: str
    target: Target
    intent: Intent
    properties: Properties
    large_objects: LargeObjects

    @property
    def s3(self) -> ObjectRequests:
        """What sends its requests."""
        return self.target.s3


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


class PlainCopy(NamedTuple):
    """What the requests of a server's own copies have in common, where one request makes a copy."""

    bucket: str
    """The legacy one."""
    headers: tuple[tuple[str, str], ...]


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
    def plain_copy(self) -> PlainCopy | None:
        """Return how one request copies an object of any size that the server copies at all; None: it takes more."""
        ...

    @property
    def smallest_parts(self) -> int:
        """Return the size of the parts, in bytes, unless the object would have too many of them."""
        ...

    def part_source(self, s3: ObjectRequests, large: Large) -> PartSource:
        """Return what brings parts of an object; other processes may bring others."""
        ...

    async def transfer(self, write: ObjectWrite) -> Written:
        """Write the production object.

        Raises ObjectNotFound when there is no legacy object; PreconditionFailed (ObjectExists, where it was seen) when
        an object is at the production key that may not be replaced; any other ObjectError as it comes.
        """
        ...


async def transfer_parts(
    write: ObjectWrite, large: Large, source: PartSource, part_bytes: int, *, keep_class: bool
) -> Written:
    """Write the object by parts from a source, and see to its properties."""
    s3 = write.s3
    described = await write.properties.describe(s3, large.source_key, large.seen, UPLOAD, keep_class=keep_class)
    told = await send_in_parts(
        write.target,
        write.intent,
        large,
        described.headers,
        source,
        part_bytes=part_bytes,
        large_objects=write.large_objects,
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
