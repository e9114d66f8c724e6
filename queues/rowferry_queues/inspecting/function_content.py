"""The content of one object, as the user's function reads it, and the time that it takes itself."""

import io
import time
from collections.abc import Iterator
from typing import Any

from rowferry.errors import ObjectError
from rowferry.http import event_loop
from rowferry.http.stream import BodyStream
from rowferry_queues.inspecting.inspection import Inspection


class Interrupted(BaseException):
    """The call is given up: its time is over, or nobody waits for it any more."""


class Clock:
    """How long a call has computed itself: the time that it waits for bytes does not count."""

    def __init__(self) -> None:
        """Start it."""
        self._spent = 0.0
        self._since: float | None = time.monotonic()

    def stop(self) -> None:
        """Note that the call waits for bytes."""
        since, self._since = self._since, None
        self._spent += 0.0 if since is None else time.monotonic() - since

    def go_on(self) -> None:
        """Note that they have come."""
        self._since = time.monotonic()

    def read(self) -> float:
        """Return the seconds so far; any thread may ask."""
        since = self._since
        return self._spent + (0.0 if since is None else time.monotonic() - since)


class Content(io.RawIOBase):
    """The content of an object, as the function reads it: it is inflated as it goes."""

    def __init__(self, inspection: Inspection, source: bytes | BodyStream, clock: Clock, name: str) -> None:
        """`source`: the whole body, or the stream that it comes by; `name`: the object's key."""
        self.name = name
        self.error: ObjectError | None = None
        """Why it could not be read on; what the function made of that does not count."""
        self.is_interrupted = False
        self._clock = clock
        self._source = source
        self._left = memoryview(b"")
        self._pieces = self._read_pieces(inspection, source)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer as far as there are bytes; 0: the end. Raises ObjectError."""
        while not self._left:
            piece = self._take_piece()
            if piece is None:
                return 0
            self._left = memoryview(piece)
        count = min(len(self._left), len(buffer))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def interrupt(self) -> None:
        """Have each further read fail. Event-loop thread only."""
        self.is_interrupted = True
        if not isinstance(self._source, bytes):
            self._source.wake()

    def read_rest(self) -> None:
        """Take all that is left, without keeping it. Raises ObjectError."""
        while self._take_piece() is not None:
            pass

    def _take_piece(self) -> bytes | None:
        if self.error is not None:
            raise self.error
        try:
            return next(self._pieces, None)
        except ObjectError as error:
            self.error = error
            raise

    def _read_pieces(self, inspection: Inspection, source: bytes | BodyStream) -> Iterator[bytes]:
        for chunk in (source,) if isinstance(source, bytes) else self._read_chunks(source):
            yield from inspection.feed(chunk)
        yield from inspection.end()

    def _read_chunks(self, stream: BodyStream) -> Iterator[bytes]:
        while True:
            self._clock.stop()
            try:
                chunk = b"".join(event_loop.submit(stream.read()).result())
            finally:
                self._clock.go_on()
            if self.is_interrupted:
                raise Interrupted
            if not chunk:
                return
            yield chunk
