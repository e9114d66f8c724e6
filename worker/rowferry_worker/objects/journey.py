"""A journey: the S3 requests that one object needs, one after the other, as a generator that knows nothing of I/O.

A journey yields requests and is sent their answers; `flight` drives many at once. Written this way, the decisions of
the copy read from top to bottom, cost no thread, and are tested without a server.
"""

from collections.abc import Callable, Generator
from typing import TypeVar

from msgspec import Struct

from rowferry.batch import Outcome
from rowferry.errors import Cancelled, CutOff, ObjectError, ObjectNotFound, PreconditionFailed, ServerFault
from rowferry.plan import SideName
from rowferry.s3.operations import Request, head_object
from rowferry.s3.responses import Answer
from rowferry.s3.results import looks_like_s3

NO_OBJECT = "rowferry-asks-whether-anybody-is-there"
"""A key to ask for when any answer will do, "not found" and "not allowed" as well."""

BOTH_SIDES = frozenset({"CopyObject", "UploadPartCopy"})
"""Operations that read one side and write the other: their names say enough."""


class Copied(Struct, frozen=True, gc=False):
    """How a journey ended well: the production object stands (migrated, kept) or a different one does (conflict)."""

    outcome: Outcome
    size_bytes: int = 0
    """Bytes that were written, as far as they are known: a server-side copy does not tell."""


T = TypeVar("T")
Steps = Generator[Request, Answer, T]
"""A part of a journey that comes to a T."""
Journey = Steps[Copied]


def ask(request: Request) -> Steps[Answer]:
    """Return the answer to a request. Raises its error where it has one."""
    answer = yield request
    if answer.error is not None:
        raise name_place(answer.error, request)
    return answer


def name_place(error: ObjectError, request: Request) -> ObjectError:
    """Return the error; it says from now on which operation of which side has met it."""
    if not isinstance(error, (Cancelled, CutOff)):  # these are of no one request
        both = request.operation in BOTH_SIDES
        error.where = request.operation if both else f"{request.operation} {request.side}"
    return error


def demand(read: Callable[[Answer], T], answer: Answer, request: Request) -> T:
    """Return what a reader of `s3_result` finds in a success. Raises its error where it finds nothing."""
    try:
        return read(answer)
    except ObjectError as error:
        raise name_place(error, request) from None


def ask_pinned(request: Request) -> Steps[Answer]:
    """Return the answer to a request that is pinned to an ETag. Raises ServerFault when the object has another now."""
    try:
        return (yield from ask(request))
    except PreconditionFailed as error:
        raise changed(request.side, request.key) from error


def changed(side: str, key: str) -> ServerFault:
    """Return the error of an object that was rewritten between two looks; the next attempt takes it as it then is."""
    return ServerFault("ObjectChanged", f"the {side} object {key!r} was written while it was read; try again")


def head(side: SideName, key: str, *, if_match: str | None = None, with_checksum: bool = False) -> Steps[Answer]:
    """Return the headers of an object, its size and ETag always among them.

    Raises ObjectNotFound where there is none, ServerFault when the answer lacks what every S3 server tells, as that of
    a proxy or a login page does.
    """
    request = head_object(side, key, if_match=if_match, with_checksum=with_checksum)
    answer = yield from (ask(request) if if_match is None else ask_pinned(request))
    demand(read_etag, answer, request)
    demand(size_of, answer, request)
    yield from refuse_web_server(request, answer)
    return answer


def refuse_web_server(request: Request, answer: Answer) -> Steps[None]:
    """Raise ServerFault when an object comes from a server that has one for every key, as the page of a web server.

    Its size, its ETag and its ranges are those of a file. S3 servers are known by their headers, or by an ETag that is
    a digest; where neither is there, a key is asked for that nobody has.
    """
    if looks_like_s3(answer):
        return
    other = yield head_object(request.side, NO_OBJECT)
    if other.error is None:
        words = "the server has an object for whatever key, so it is not an S3 server"
        raise name_place(ServerFault("NoS3Server", words), request)
    if other.error.retryable:
        raise name_place(other.error, request)


def find(side: SideName, key: str) -> Steps[Answer | None]:
    """Return the headers of an object as `head` does, None where there is none."""
    try:
        return (yield from head(side, key))
    except ObjectNotFound:
        return None


def read_etag(answer: Answer) -> str:
    """Return the ETag header of an object, unquoted. Raises ServerFault without one."""
    if not answer.etag:
        raise ServerFault("NoETag", "the answer has no ETag, so it is not that of an S3 server")
    return answer.etag


def size_of(answer: Answer) -> int:
    """Return the size in bytes that an answer of `head` tells. Raises ServerFault where it tells none."""
    if answer.content_length is None:
        raise ServerFault("NoContentLength", "the server does not say how large the object is")
    return answer.content_length
