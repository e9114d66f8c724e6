"""The body of a request that is that of another response, written on as it arrives. Event-loop thread only."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rowferry.errors import ObjectError, ServerFault
from rowferry.http.deadlines import InFlight

if TYPE_CHECKING:
    from rowferry.http.stream import BodyStream


class SourceFailed(Exception):
    """What was to bring the body of a request has failed, not the request."""

    def __init__(self, error: ObjectError) -> None:
        """Keep why."""
        super().__init__(str(error))
        self.error = error


class Pipe:
    """Writes pieces to the target as they arrive from the source, which waits while the target does not read.

    The deadline of the one that is waited for runs, and the other's does not. Each try of the request begins anew.
    """

    def __init__(self, length: int, source: "BodyStream | None" = None) -> None:
        """`length` is in bytes; `source`: a body that is to be passed on first, where there is one already."""
        self.length = length
        self.passed_bytes = 0
        self.is_stopped = False
        """Whether the target takes no more."""
        self._body: BodyStream | bytes = source or b""
        self._is_begun = source is None
        self._source: tuple[asyncio.Transport, InFlight] | None = None

    async def ask(self) -> "BodyStream | bytes":
        """Return the body from its first byte. May raise an ObjectError."""
        raise NotImplementedError

    def begin(self) -> None:
        """Forget what was noted: the body begins anew."""

    def note(self, piece: bytes) -> None:
        """Note a piece that passes. May raise an ObjectError, which ends the request."""

    async def end(self) -> None:
        """Check what has passed, before the last piece is written. May raise an ObjectError, which ends the request."""

    async def open(self, in_flight: InFlight | None) -> None:
        """Begin at the first byte, before a connection is held; `in_flight` is the request. Raises SourceFailed."""
        if self._is_begun:
            self.close()
            with _waiting_for_source(in_flight):
                self._body = await self.ask()
        self._is_begun, self.is_stopped, self.passed_bytes = False, False, 0
        self.begin()

    async def send(self, target: asyncio.Transport, in_flight: InFlight | None, *, is_paused: bool) -> bytes:
        """Write the body, all but its last piece, and return that once `end` has agreed to the whole.

        Empty where the target takes no more. `is_paused`: whether the target has to read first. Raises SourceFailed.
        """
        self._target, self._target_in_flight, self._is_paused = target, in_flight, is_paused
        self._is_begun = True
        self._last: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        with _waiting_for_source(in_flight):
            if isinstance(self._body, bytes):
                self.take([self._body], is_end=True)
                last = await self._last
            else:
                last = await self._body.pass_on(self)
            if not self.is_stopped and self.passed_bytes + len(last) != self.length:
                raise ServerFault("TruncatedBody", "the body to be sent has ended too early")
            if last:
                await self.end()
        return last

    async def join(self, source: asyncio.Transport, in_flight: InFlight) -> bytes:
        """Let the source read while the target does; return as `send`. Raises why the source has failed."""
        self._source = source, in_flight
        try:
            self._share_wait()
            return await self._last
        finally:
            self._source = None
            if self._last.done() and not self._last.cancelled():
                self._last.exception()  # seen, also where the task was cancelled at the same moment
            if not source.is_closing():
                source.resume_reading()

    def take(self, pieces: list[bytes], *, is_end: bool) -> None:
        """Write pieces that have come, and have them noted; the last one of the body is kept back."""
        if self._last.done() or not pieces:
            return
        for piece in pieces[:-1] if is_end else pieces:
            self.write(piece)
        try:
            for piece in pieces:
                self.note(piece)
        except ObjectError as error:
            self.fail(error)
        else:
            if is_end:
                self._last.set_result(pieces[-1])

    def write(self, piece: bytes) -> None:
        """Write a piece."""
        self.passed_bytes += len(piece)
        if not self._target.is_closing():
            self._target.write(piece)

    def pause(self, *, is_paused: bool) -> None:
        """Have the source wait until the target has read, or go on."""
        self._is_paused = is_paused
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

    def close(self) -> None:
        """Read no more."""
        if not isinstance(self._body, bytes):
            self._body.close()

    def _share_wait(self) -> None:
        """Read from the source, or wait for the target; only the one that is waited for owes anything."""
        if self._source is None or self._source[0].is_closing():
            return
        source, source_in_flight = self._source
        if self._is_paused:
            source.pause_reading()
            source_in_flight.note_waiting()
        else:
            source.resume_reading()
            source_in_flight.note_sent()
        if self._target_in_flight is not None:
            (self._target_in_flight.note_sent if self._is_paused else self._target_in_flight.note_waiting)()


@contextmanager
def _waiting_for_source(in_flight: InFlight | None) -> Generator[None]:
    """Wait for the source in the block, while the server owes no response. Raises SourceFailed."""
    if in_flight is not None:
        in_flight.note_waiting()
    try:
        yield
    except ObjectError as error:
        raise SourceFailed(error) from error
    finally:
        if in_flight is not None:
            in_flight.note_sent()
