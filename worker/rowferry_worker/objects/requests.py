"""The S3 requests of a batch's copies: each takes its turn, is sent with retries, and is read with suspicion."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import TracebackType
from typing import Literal, Protocol, TypeVar

from rowferry.errors import (
    RESPONSE_TOO_LONG,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    ServerFault,
)
from rowferry.plan import CannedAcl, SideName
from rowferry.s3.acl import Grants, read_grants
from rowferry.s3.operations import (
    Request,
    get_object_acl,
    get_object_tagging,
    head_object,
    put_object_acl,
    put_object_tagging,
)
from rowferry.s3.responses import Response, name_request, read_tags
from rowferry.s3.results import looks_like_s3
from rowferry.s3.retry import LONGEST_TURN, TRIES, Send, wait_before_retry
from rowferry_worker.monitoring import metrics

NO_OBJECT = "rowferry-asks-whether-anybody-is-there"
"""A key without an object: to ask for when any response will do, "not found" and "not allowed" as well."""
T = TypeVar("T")
Tags = tuple[tuple[str, str], ...]
GivenBy = Literal["PutObject", "CopyObject", "CreateMultipartUpload"]
"""The operations that are to give an object its tags and its ACL."""
UNKNOWN = frozenset({"NotImplemented", "HTTP 501", "HTTP 405", "MethodNotAllowed"})
"""Error codes of a server that does not know a subresource."""


class Pace(Protocol):
    """When requests may be sent, and what is made of their ends."""

    def reserve(self, side: SideName, operation: str, /) -> timedelta:
        """Take the turn of a request, and return how long to wait for it.

        More than LONGEST_TURN: the turn was not taken and is to be asked for again after that.
        """
        ...

    def record(self, request: Request, result: Response | ObjectError, seconds: float, /) -> None:
        """Record one try of a request, which took so many seconds; must not block."""
        ...


class ObjectRequests:
    """Sends the requests of copies; every method raises the ObjectError of a request that fails for good."""

    def __init__(self, send: Send, pace: Pace | None = None) -> None:
        """`send` makes one try, at once; without `pace`, nothing waits and nothing is recorded."""
        self._send = send
        self._pace = pace

    async def send(self, request: Request, *, tries: int = TRIES) -> Response:
        """Send a request until it succeeds, at most `tries` times, and return the response."""
        for tried in range(1, tries + 1):
            await self.take_turn(request.side, request.operation)
            try:
                return await self.send_once(request)
            except ObjectError as error:
                await self.wait_before_retry(request.side, error, tried, tries)
        raise AssertionError(tries)  # the last try returns or raises

    async def take_turn(self, side: SideName, operation: str) -> None:
        """Wait for the turn of a request; one that is too far away is asked for again."""
        while self._pace is not None and (wait := self._pace.reserve(side, operation)):
            await asyncio.sleep(min(wait, LONGEST_TURN).total_seconds())
            if wait <= LONGEST_TURN:
                return

    async def send_once(self, request: Request) -> Response:
        """Send a request whose turn was taken; once."""
        started = time.monotonic()
        try:
            response = await self._send(request)
        except ObjectError as error:
            if self._pace is not None and not _is_of_source(request, error):
                self._pace.record(request, error, time.monotonic() - started)
            raise
        if self._pace is not None:
            self._pace.record(request, response, time.monotonic() - started)
        return response

    async def wait_before_retry(self, side: SideName, error: ObjectError, tried: int, tries: int) -> None:
        """Wait after a try that has failed. Raises the error where no other try follows."""
        await wait_before_retry(error, tried, tries)
        metrics.request_retries.labels(side).inc()

    async def send_pinned(self, request: Request, *, tries: int = TRIES) -> Response:
        """Return the response to a request that names an ETag. Raises ServerFault when the object has another now."""
        try:
            return await self.send(request, tries=tries)
        except PreconditionFailed as error:
            raise object_changed(request.side, request.key) from error

    async def head(
        self, side: SideName, key: str, *, if_match: str | None = None, with_checksum: bool = False
    ) -> Response:
        """Return the headers of an object, its size and ETag always among them.

        Raises ObjectNotFound where there is none, ServerFault when the response lacks what every S3 server tells, as
        that of a proxy or a login page does.
        """
        request = head_object(side, key, if_match=if_match, with_checksum=with_checksum)
        response = await (self.send(request) if if_match is None else self.send_pinned(request))
        demand(read_etag, response, request)
        demand(size_of, response, request)
        await self.refuse_web_server(request, response)
        return response

    async def find(self, side: SideName, key: str) -> Response | None:
        """Return the headers of an object as `head` does, None where there is none."""
        try:
            return await self.head(side, key)
        except ObjectNotFound:
            return None

    async def refuse_web_server(self, request: Request, response: Response) -> None:
        """Raise ServerFault when an object comes from a server that has one for every key, as a web server may.

        Its size, its ETag and its ranges are those of a file. S3 servers are known by their headers, or by an ETag
        that is a digest; where neither is there, NO_OBJECT is asked for.
        """
        if looks_like_s3(response):
            return
        try:
            await self.send(head_object(request.side, NO_OBJECT))
        except ObjectError as error:
            if error.retryable:
                raise
            return
        words = "the server has an object for every key, so it is not an S3 server"
        raise name_request(ServerFault("NoS3Server", words), request)

    async def fetch_tags(self, side: SideName, key: str) -> Tags:
        """Return the tags of an object."""
        request = get_object_tagging(side, key)
        try:
            response = await self.send(request)
        except (ObjectRejected, ObjectNotFound) as error:
            if error.code == "NoSuchTagSet":
                return ()
            raise
        return demand(lambda found: read_tags(found.body), response, request)

    async def put_tags(self, key: str, tags: Tags) -> None:
        """Give a production object these tags, in the place of those that it has."""
        await self.send(put_object_tagging(key, tags))

    async def fetch_grants(self, side: SideName, key: str) -> Grants:
        """Return whom the ACL of an object grants what, besides its owner."""
        request = get_object_acl(side, key)
        return demand(lambda found: read_grants(found.body), await self.send(request), request)

    async def put_acl(self, key: str, acl: CannedAcl) -> None:
        """Give a production object a canned ACL, in the place of its own."""
        await self.send(put_object_acl(key, acl))


def _is_of_source(request: Request, error: ObjectError) -> bool:
    """Return whether the source of a request's body has failed: what it has asked for itself is recorded already."""
    return request.source is not None and (error.side, error.operation) != (request.side, request.operation)


def demand(read: Callable[[Response], T], response: Response, request: Request) -> T:
    """Return what a reader finds in a success. Raises its ServerFault, with the request's name, where it is missing."""
    try:
        return read(response)
    except ObjectError as error:
        raise name_request(error, request) from None


class DemandingObject:
    """Turns a 404 for a production object that was there a moment ago into a ServerFault: no legacy object is missing.

    It was deleted meanwhile, or the server does not find at once what it has. (A class: every copy passes here, and a
    generator as a context costs four times as much.)
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        """Raise ServerFault in the place of that error; every other one goes on."""
        if not isinstance(error, ObjectNotFound) or error.side != "production":
            return
        gone = ServerFault("ObjectGone", f"the production object was there and is not found now ({error}); try again")
        gone.side, gone.operation, gone.where = error.side, error.operation, error.where
        raise gone from error


def object_changed(side: str, key: str) -> ServerFault:
    """Return the error of an object that was rewritten between two looks; the next attempt takes it as it then is."""
    return ServerFault("ObjectChanged", f"the {side} object {key!r} was written while it was read; try again")


def read_etag(response: Response) -> str:
    """Return the ETag header of an object, unquoted. Raises ServerFault without one."""
    if not response.etag:
        raise ServerFault("NoETag", "the answer has no ETag, so it is not that of an S3 server")
    return response.etag


def size_of(response: Response) -> int:
    """Return the size in bytes that the headers of an object tell. Raises ServerFault where they tell none."""
    if response.content_length is None:
        raise ServerFault("NoContentLength", "the server does not say how large the object is")
    return response.content_length


def is_unknown(error: ObjectError) -> bool:
    """Return whether the error of GetObjectTagging or GetObjectAcl is that of a server without tags or ACLs.

    gofakes3 answers with the object itself, which may be longer than is taken; Google's XML API is said to answer 400.
    """
    return error.code in UNKNOWN or error.code in {"UnreadableResponse", RESPONSE_TOO_LONG, "InvalidArgument"}


async def fetch_known(fetched: Awaitable[T], otherwise: ObjectRejected) -> T:
    """Return what was fetched. Raises `otherwise` where the server does not know the subresource."""
    try:
        return await fetched
    except ObjectError as error:
        if not is_unknown(error):
            raise
        raise otherwise from error
