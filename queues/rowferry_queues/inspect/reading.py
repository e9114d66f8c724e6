"""Streams one object through its inspection: small ones on the event loop, all else beside it."""

import asyncio
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ServerFault
from rowferry.http.stream import BodyStream
from rowferry.plan import SideName
from rowferry.s3.operations import Request, get_object
from rowferry.s3.responses import Response
from rowferry.s3.results import read_content_range
from rowferry.s3.retry import TRIES, may_pass, pause_before_retry
from rowferry_queues.inspect import inflating
from rowferry_queues.inspect.function import Function, Functions
from rowferry_queues.inspect.inspection import (
    DIMENSIONS,
    IMAGE_HEAD_BYTES,
    INLINE_BYTES,
    Computed,
    Inspection,
    exhaust,
    read_whole,
)
from rowferry_queues.inspect.spec import InspectSettings
from rowferry_worker.compute import compute
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.machine import count_cores
from rowferry_worker.objects.memory import BodyBudget, Hold
from rowferry_worker.objects.pipe import PIPE_BYTES
from rowferry_worker.objects.requests import ObjectRequests, demand, read_etag, size_of

PARTIAL, NO_SUCH_RANGE = 206, 416
"""Statuses of HTTP."""
WHOLE_BYTES = 128 * 1024
"""The largest object that is taken whole: it comes with its headers."""
INLINE_CHUNK_BYTES = 16 * 1024
"""The same of one piece of a stream: a larger one is worth the way to another thread."""
WINDOWS_BYTES = 16 * inflating.WINDOW_BYTES
"""What the windows of all zstd streams of a process may hold."""
STREAMED_CALLS = 16
HEAD_BYTES = IMAGE_HEAD_BYTES
"""What is asked for of an object whose beginning tells all: compressed, it may have to inflate to a little less."""


class ReadSettings(Struct, frozen=True):
    """How the objects of a batch are read."""

    computed: Computed
    bodies: BodyBudget
    function: Function | None = None
    returned: tuple[str, ...] = ()
    function_seconds: float = 60.0

    @classmethod
    def of(cls, settings: InspectSettings, bodies: BodyBudget, function: Function | None) -> "ReadSettings":
        """Return what the plan asks for."""
        computed = Computed(
            facts=settings.facts,
            reads_content=function is not None,
            may_inflate=settings.inflate == "auto",
            max_inflated_bytes=settings.max_inflated_bytes,
            max_ratio=settings.max_ratio,
        )
        return cls(computed, bodies, function, settings.returned, settings.function_seconds)


@cache
def get_functions() -> Functions:
    """Return the calls of this process."""
    return Functions(count_cores(), STREAMED_CALLS)


@cache
def get_windows() -> BodyBudget:
    """Return what the windows of this process may hold: it is waited for with a share of the bodies, never before."""
    return BodyBudget(WINDOWS_BYTES)


async def inspect_object(s3: ObjectRequests, reading: ReadSettings, side: SideName, key: str) -> CopyResult:
    """Return the facts of an object as the result's value. Raises ContentFault, and any ObjectError of its GET.

    A GET whose body breaks off is repeated as one without a response is.
    """
    for tried in range(1, TRIES + 1):
        try:
            return await _InspectedObject(s3, reading, side, key).inspect()
        except _BrokenBody as broken:
            error = broken.error
            if tried == TRIES or not may_pass(error):
                raise error from None
            await asyncio.sleep(pause_before_retry(error, tried).total_seconds())
    raise AssertionError(TRIES)  # the last try returns or raises


class _BrokenBody(Exception):
    """The body of a GET has ended too early."""

    def __init__(self, error: ObjectError) -> None:
        super().__init__(str(error))
        self.error = error


class _InspectedObject:
    """One try at one object."""

    def __init__(self, s3: ObjectRequests, reading: ReadSettings, side: SideName, key: str) -> None:
        self._s3 = s3
        self._reading = reading
        self._request: Request = replace(get_object(side, key), stream_above=WHOLE_BYTES)

    async def inspect(self) -> CopyResult:
        if self._reading.function is None and self._reading.computed.facts <= {"size"}:
            seen = await self._s3.head(self._request.side, self._request.key)
            return CopyResult(Outcome.MIGRATED, value={"size": size_of(seen)})
        with await self._reading.bodies.hold() as hold:
            response = await self._ask()
            try:
                demand(read_etag, response, self._request)
                await self._s3.refuse_web_server(self._request, response)
                facts = await self._compute(response, hold)
            finally:
                if response.stream is not None:
                    response.stream.close()
        return CopyResult(Outcome.MIGRATED, response.body_bytes, value=facts)

    async def _ask(self) -> Response:
        """Return the object, or its first HEAD_BYTES where they tell all.

        An empty object has no first bytes to ask for. A server without ranges sends all, which is not read to its end.
        """
        if not self._reading.computed.is_of_head:
            return await self._s3.send(self._request)
        side, key = self._request.side, self._request.key
        head = replace(get_object(side, key, first_byte=0, last_byte=HEAD_BYTES - 1), stream_above=WHOLE_BYTES)
        try:
            return await self._s3.send(head)
        except ObjectError as error:
            if error.status != NO_SUCH_RANGE and error.code != "WrongRange":
                raise
        return await self._s3.send(self._request)

    async def _compute(self, response: Response, hold: Hold) -> dict[str, Any]:
        reading = self._reading
        inspection = Inspection(reading.computed, response.headers.get("content-encoding", ""))
        size = _read_size(response)
        if response.stream is None:
            hold.resize(2 * len(response.body) + inflating.PIECE_BYTES)
            returned = await self._take_whole(inspection, response.body)
        else:
            hold.resize(PIPE_BYTES + IMAGE_HEAD_BYTES + inflating.PIECE_BYTES)
            returned = await self._take_stream(inspection, response.stream, is_cut=response.body_bytes < size)
        if not reading.computed.facts & DIMENSIONS:
            return {**inspection.read_facts(size), **returned}
        return {**await compute(inspection.read_facts, size), **returned}  # an image that lies takes long

    async def _take_whole(self, inspection: Inspection, body: bytes) -> dict[str, Any]:
        if self._reading.function is not None:
            return await self._call(self._reading.function, inspection, body)
        windows = inflating.WINDOW_BYTES if inflating.needs_window(body[: inflating.HEAD_BYTES]) else 0
        with await get_windows().hold(windows):
            await exhaust(read_whole(inspection, body), INLINE_BYTES)
        return {}

    async def _take_stream(self, inspection: Inspection, stream: BodyStream, *, is_cut: bool) -> dict[str, Any]:
        if self._reading.function is not None:
            with await get_windows().hold(inflating.WINDOW_BYTES):
                try:
                    return await self._call(self._reading.function, inspection, stream)
                except ObjectError as error:
                    raise _BrokenBody(error) from error
        chunk = await _read_chunk(stream)
        windows = inflating.WINDOW_BYTES if inflating.needs_window(chunk[: inflating.HEAD_BYTES]) else 0
        with await get_windows().hold(windows):
            while chunk:
                await exhaust(inspection.feed(chunk), INLINE_BYTES if len(chunk) <= INLINE_CHUNK_BYTES else 0)
                chunk = b"" if inspection.is_complete else await _read_chunk(stream)
            await exhaust(inspection.end(is_cut=is_cut), INLINE_BYTES)
        return {}

    async def _call(self, function: Function, inspection: Inspection, source: bytes | BodyStream) -> dict[str, Any]:
        reading, key = self._reading, self._request.key
        reads_all = bool(reading.computed.facts)
        seconds = reading.function_seconds
        values = await get_functions().call(
            function, inspection, source, key, names=reading.returned, reads_all=reads_all, seconds=seconds
        )
        return {**values}


def _read_size(response: Response) -> int:
    """Return the size in bytes of the object that a response has, or has the beginning of."""
    if response.status != PARTIAL:
        return response.body_bytes
    came = read_content_range(response)
    if came is None or came.total is None:
        raise ServerFault("NoContentLength", "the server does not say how large the object is")
    return came.total


async def _read_chunk(stream: BodyStream) -> bytes:
    """Return the next bytes of a body; none at its end. Raises _BrokenBody."""
    try:
        return b"".join(await stream.read())
    except ObjectError as error:
        raise _BrokenBody(error) from error
