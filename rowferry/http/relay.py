"""A body that passes from the connection it arrives on to the one it is sent on. Event-loop thread only."""

import asyncio
from collections.abc import Awaitable
from typing import Protocol, TypeVar

from rowferry.errors import ObjectError, ServerFault
from rowferry.http.deadlines import InFlight

T = TypeVar("T")


class SourceFailed(Exception):
    """What was to bring the body of a request has failed, not the request."""

    def __init__(self, error: ObjectError) -> None:
        """Keep why."""
        super().__init__(str(error))
        self.error = error


class BodySource(Protocol):
    """The body of a request that is never in memory as a whole."""

    length: int
    """In bytes."""

    async def open(self) -> None:
        """Begin at the first byte, also where some was sent. Called before each try, while no connection is held."""
        ...

    async def send(self, relay: "Relay") -> bytes:
        """Write the body to `relay` as it arrives, all but the last piece; return that once the whole is right.

        Empty where the server takes no more. Raises ObjectError where the body cannot be had, or is not right.
        """
        ...

    def note(self, piece: bytes) -> None:
        """Note a piece that passes. An ObjectError ends the request."""
        ...


class Relay:
    """Writes pieces to the target as they arrive from the source; the source waits while the target does not read.

    The deadline of the one that is waited for runs, and the other's does not.
    """

    def __init__(
        self, body: BodySource, target: asyncio.Transport, in_flight: InFlight | None, *, is_paused: bool
    ) -> None:
        """`in_flight` is the request to the target; `is_paused`: whether the target has to read first."""
        self.passed_bytes = 0
        self._body = body
        self.is_stopped = False
        """Whether the target takes no more."""
        self._target = target
        self._target_in_flight = in_flight
        self._is_paused = is_paused
        self._source: asyncio.Transport | None = None
        self._source_in_flight: InFlight | None = None
        self._last: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The last piece, empty where the target takes no more; or why the source has failed."""

    async def send(self) -> bytes:
        """Return the last piece of the body, whose other pieces are written; empty where the target takes no more.

        Raises SourceFailed.
        """
        last = await wait_for_source(self._body.send(self), self._target_in_flight)
        if not self.is_stopped and self.passed_bytes + len(last) != self._body.length:
            raise SourceFailed(ServerFault("TruncatedBody", "the body to be sent has ended too early"))
        return last

    async def join(self, source: asyncio.Transport, in_flight: InFlight) -> bytes:
        """Let the source read while the target does, until its last piece has come, and return that.

        Empty where the target takes no more. Raises why the source has failed.
        """
        self._source, self._source_in_flight = source, in_flight
        try:
            self._share_wait()
            return await self._last
        finally:
            self._source = self._source_in_flight = None
            if self._last.done() and not self._last.cancelled():
                self._last.exception()  # seen, also where the task was cancelled at the same moment
            if not source.is_closing():
                source.resume_reading()

    def pass_on(self, pieces: list[bytes], *, is_end: bool) -> None:
        """Write pieces that have come, and have them noted; the last one of the body is kept back."""
        if self._last.done() or not pieces:
            return
        last = pieces[-1] if is_end else b""
        for piece in pieces[:-1] if is_end else pieces:
            self.write(piece)
        try:
            for piece in pieces:
                self._body.note(piece)
        except ObjectError as error:
            self.fail(error)
        else:
            if is_end:
                self._last.set_result(last)

    def write(self, piece: bytes) -> None:
        """Write a piece."""
        self.passed_bytes += len(piece)
        if not self._target.is_closing():
            self._target.write(piece)

    def pause(self) -> None:
        """Have the source wait: the target has to read first."""
        self._is_paused = True
        self._share_wait()

    def resume(self) -> None:
        """Let the source go on."""
        self._is_paused = False
        self._share_wait()

    def stop(self) -> None:
        """End: the target takes no more."""
        self.is_stopped = True
        if not self._last.done():
            self._last.set_result(b"")

    def fail(self, error: ObjectError) -> None:
        """End: the source has failed."""
        if not self._last.done():
            self._last.set_exception(error)

    def _share_wait(self) -> None:
        """Read from the source, or wait for the target; only the one that is waited for owes anything."""
        if self._source is None or self._source_in_flight is None or self._source.is_closing():
            return
        awaited, other = self._target_in_flight, self._source_in_flight
        if self._is_paused:
            self._source.pause_reading()
        else:
            self._source.resume_reading()
            awaited, other = other, awaited
        if other is not None:
            other.note_waiting()
        if awaited is not None:
            awaited.note_sent()


async def wait_for_source(step: Awaitable[T], in_flight: InFlight | None) -> T:
    """Return what a step of a source returns; while it takes, the server owes no response. Raises SourceFailed."""
    if in_flight is not None:
        in_flight.note_waiting()
    try:
        return await step
    except ObjectError as error:
        raise SourceFailed(error) from error
    finally:
        if in_flight is not None:
            in_flight.note_sent()
