"""Runs the user's function on the content of one object, in a thread of its own, within a time limit.

From top to bottom: the content that it reads and the time that it takes, what it returns, one call, and the calls of a
process.
"""

import asyncio
import ctypes
import io
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

import msgspec

from rowferry.errors import MigrationFault, ObjectError
from rowferry.http import event_loop
from rowferry.http.stream import BodyStream
from rowferry_queues.inspect.allowed import Function
from rowferry_queues.inspect.inflating import ContentFault
from rowferry_queues.inspect.inspection import Inspection

BUFFER_BYTES = 64 * 1024
MOST_STUCK = 8
"""After so many calls that do not end whatever is done, no further one is made: each keeps a thread."""
LOOK_EVERY = 0.5
MOST_VALUE_BYTES = 1024 * 1024
MOST_WORDS = 1000


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


def choose_values(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the values of these names. Raises ContentFault where one is missing, or too long for a row."""
    for name in names:
        if name not in values:
            found = ", ".join(name for name in values if isinstance(cast("Any", name), str))[:MOST_WORDS] or "nothing"
            raise ContentFault("FunctionFailed", f"the function returned {found}, but no {name}")
        if measure(values[name]) > MOST_VALUE_BYTES:
            raise ContentFault("FunctionFailed", f"the function returned more than {MOST_VALUE_BYTES} bytes as {name}")
    return {name: values[name] for name in names}


def measure(value: Any) -> int:
    """Return how long a value is: of a text in characters, of what is written as JSON, and of bytes, in bytes."""
    if isinstance(value, str | bytes):
        return len(value)
    return len(msgspec.json.encode(value)) if isinstance(value, dict | list | tuple) else 0


def describe(error: BaseException) -> str:
    """Return the type of an error and what it says, at most MOST_WORDS characters of it; it may be anything."""
    try:
        return f"{type(error).__name__}: {error}"[:MOST_WORDS]
    except Exception:  # noqa: BLE001 - of the error's own code
        return type(error).__name__


class Call(threading.Thread):
    """One call of the function. A daemon: the end of the process does not wait for it."""

    def __init__(
        self, function: Function, content: Content, clock: Clock, *, names: Sequence[str], reads_all: bool
    ) -> None:
        """`names`: of the values that are kept; `reads_all`: what the function leaves of the object is read as well."""
        super().__init__(name="rowferry-function", daemon=True)
        self.result: Future[Mapping[str, Any]] = Future()
        self.clock = clock
        self._function = function
        self._content = content
        self._names = names
        self._reads_all = reads_all

    def run(self) -> None:
        """Call it, and keep what it returns or raises."""
        try:
            self.result.set_result(self._call())
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            self.result.set_exception(self._content.error or error)

    def interrupt(self) -> None:
        """Have the call end: its next read fails, and so does its next step in Python. Event-loop thread only."""
        self._content.interrupt()
        if self.ident is not None and self.is_alive() and not self.result.done():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(Interrupted))

    def _call(self) -> Mapping[str, Any]:
        returned = self._function(io.BufferedReader(self._content, BUFFER_BYTES))
        if self._content.error is not None:
            raise self._content.error
        if not isinstance(cast("Any", returned), Mapping):
            raise TypeError(f"it returned {type(returned).__name__}, not a dict")
        if self._reads_all:
            self._content.read_rest()
        return choose_values(dict(returned), self._names)


class Functions:
    """Calls of a function in this process. Event-loop thread only."""

    def __init__(self, whole: int, streamed: int) -> None:
        """`whole`, `streamed`: how many are called at once, with whole bodies, and while their bodies still come."""
        self._turns = {False: asyncio.Semaphore(whole), True: asyncio.Semaphore(streamed)}
        self._stuck: list[Call] = []

    async def call(
        self,
        function: Function,
        inspection: Inspection,
        source: bytes | BodyStream,
        key: str,
        *,
        names: Sequence[str],
        reads_all: bool,
        seconds: float,
    ) -> Mapping[str, Any]:
        """Return the values of these names that the function returns.

        Raises ContentFault where it fails, ObjectError where the body does.
        """
        async with self._turns[not isinstance(source, bytes)]:
            self._refuse_more_stuck()
            clock = Clock()
            call = Call(function, Content(inspection, source, clock, key), clock, names=names, reads_all=reads_all)
            call.start()
            try:
                await self._wait_for(call, seconds)
            except BaseException:
                call.interrupt()
                self._stuck.append(call)
                raise
        try:
            return call.result.result()
        except ObjectError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises is the entry's failure
            raise ContentFault("FunctionFailed", f"the function failed with {describe(error)}") from None

    async def _wait_for(self, call: Call, seconds: float) -> None:
        """Wait for the end of a call. Raises ContentFault once it has computed for longer than this."""
        ended = asyncio.wrap_future(call.result)
        ended.add_done_callback(lambda done: done.cancelled() or done.exception())  # it is read from `result`
        while not ended.done():
            left = seconds - call.clock.read()
            if left <= 0:
                words = f"the function did not end within {seconds:g} s (function_seconds)"
                raise ContentFault("FunctionTimedOut", words)
            await asyncio.wait([ended], timeout=min(left + 0.01, LOOK_EVERY))

    def _refuse_more_stuck(self) -> None:
        """Raise MigrationFault where too many calls have not ended although they were interrupted."""
        self._stuck = [call for call in self._stuck if call.is_alive()]
        if len(self._stuck) >= MOST_STUCK:
            words = f"{MOST_STUCK} calls of the function of [queue.inspect] do not end in this process"
            raise MigrationFault(f"{words}; give what it waits for a time limit, and restart the worker.")
