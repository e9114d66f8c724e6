"""An object that is read once, to compute with its bytes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from rowferry.errors import ObjectError, ServerFault
from rowferry.http import event_loop
from rowferry.plan import SideName
from rowferry.s3.operations import Request, get_object
from rowferry.s3.responses import Response
from rowferry.s3.results import read_content_range
from rowferry.s3.retry import TRIES, may_pass, pause_before_retry
from rowferry_worker.objects.memory import BodyBudget
from rowferry_worker.objects.pipe import PIPE_BYTES
from rowferry_worker.objects.requests import ObjectRequests, demand, read_etag

T = TypeVar("T")
Work = Callable[[Response, Iterator[bytes]], Awaitable[T]]
"""Gets the headers of an object, and its bytes; a thread that takes these waits for them, as that of `compute` may."""
WHOLE_BYTES = 128 * 1024
"""The largest object that is taken whole: it comes with its headers."""
WORK_BYTES = 128 * 1024
"""What the work on an object may hold beside its body."""
PARTIAL, NO_SUCH_RANGE = 206, 416
"""Statuses of HTTP."""


async def read_object(
    s3: ObjectRequests, bodies: BodyBudget, side: SideName, key: str, work: Work[T], *, head_bytes: int | None = None
) -> T:
    """Return what the work on an object returns. Raises what that raises, and any ObjectError of the GET.

    `bodies`: what the bodies of the process may hold; `head_bytes`: so much of its beginning tells all. Where a body
    breaks off, the object is read again from its first byte, and the work begins anew.
    """
    request = replace(get_object(side, key), stream_above=WHOLE_BYTES)
    for tried in range(1, TRIES + 1):
        with await bodies.hold() as hold:
            response = await _ask(s3, request, head_bytes)
            hold.resize(WORK_BYTES + (PIPE_BYTES if response.stream else 2 * len(response.body)))
            try:
                demand(read_etag, response, request)
                await s3.refuse_web_server(request, response)
                return await work(response, _read_chunks(response))
            except ObjectError as error:
                if response.stream is None or tried == TRIES or not may_pass(error):
                    raise
                pause = pause_before_retry(error, tried)
            finally:
                if response.stream is not None:
                    response.stream.wake()
                    response.stream.close()
        await asyncio.sleep(pause.total_seconds())
    raise AssertionError(TRIES)  # the last try returns or raises


async def _ask(s3: ObjectRequests, request: Request, head_bytes: int | None) -> Response:
    """Return the response to a GET, or to one of an object's first bytes.

    An empty object has no first bytes to ask for. A server without ranges sends all, which need not be read.
    """
    if head_bytes is not None:
        head = get_object(request.side, request.key, first_byte=0, last_byte=head_bytes - 1)
        try:
            return await s3.send(replace(head, stream_above=WHOLE_BYTES))
        except ObjectError as error:
            if error.status != NO_SUCH_RANGE and error.code != "WrongRange":
                raise
    return await s3.send(request)


def _read_chunks(response: Response) -> Iterator[bytes]:
    if response.stream is None:
        yield response.body
        return
    while chunk := b"".join(event_loop.submit(response.stream.read()).result()):
        yield chunk


def read_size(response: Response) -> int:
    """Return the size in bytes of the object that a response has, or has the beginning of."""
    if response.status != PARTIAL:
        return response.body_bytes
    came = read_content_range(response)
    if came is None or came.total is None:
        raise ServerFault("NoContentLength", "the server does not say how large the object is")
    return came.total
