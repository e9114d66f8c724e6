"""Deadlines of requests: one timer for all. asyncio.timeout does the same, at 4 µs of CPU a request."""

import asyncio
import math
import time
from types import TracebackType
from typing import Any, Protocol, Self

SCAN_SECONDS = 0.25
"""A request may outlive its deadline by this much."""
LONGEST = 10
"""A request whose response keeps coming ends after so many deadlines all the same."""
SLOWEST_BYTES_PER_SECOND = 64 * 1024
"""A body that is streamed may take longer by its length at this rate: a thin link is shared by many."""


class Watched(Protocol):
    """A request in flight. Times are those of time.monotonic()."""

    started: float
    """When it was sent."""
    heard_at: float
    """When the last byte of the response came, or the last one of the request was sent."""
    allowance: float
    """Seconds that it may take on top of LONGEST deadlines."""

    def expire(self) -> None:
        """End it: it is overdue."""
        ...


class Deadlines:
    """The requests in flight of one client. Event-loop thread only."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: how long a request may go without a byte of its response."""
        self.seconds = seconds
        self._in_flight: dict[Watched, None] = {}
        self._is_scanning = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.last_response: float | None = None
        """When (`time.monotonic()`) the last byte of any response came; None: never yet."""

    @property
    def oldest(self) -> float | None:
        """Return when (`time.monotonic()`) the oldest request was sent that is owed something; None: there is none."""
        return min((each.started for each in list(self._in_flight) if each.heard_at < math.inf), default=None)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop, found once: before Python 3.12, asking for the running one is a system call."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def add(self, request: Watched) -> None:
        """Watch a request."""
        self._in_flight[request] = None
        if not self._is_scanning:
            self._is_scanning = True
            self.loop.call_later(SCAN_SECONDS, self._scan)

    def remove(self, request: Watched) -> None:
        """Watch it no more."""
        del self._in_flight[request]

    def _scan(self) -> None:
        """Cancel the requests that are overdue, and come back while there are any in flight."""
        now = time.monotonic()
        for request in list(self._in_flight):  # one that expires may end at once
            is_silent = now - request.heard_at > self.seconds
            is_long = now - request.started > LONGEST * self.seconds + request.allowance
            if (is_silent or is_long) and request in self._in_flight:  # it may have ended with another
                request.expire()
        self._is_scanning = bool(self._in_flight)
        if self._is_scanning:
            self.loop.call_later(SCAN_SECONDS, self._scan)


class InFlight:
    """A request from its start to its end: a context that raises TimeoutError when the request is overdue."""

    __slots__ = ("_cancelling", "_deadlines", "_is_overdue", "_task", "allowance", "heard_at", "started")

    def __init__(self, deadlines: Deadlines, started: float | None = None, *, streamed_bytes: int = 0) -> None:
        """Start now; `started` (`time.monotonic()`): what goes on is a request that was sent then.

        `streamed_bytes`: the length of a body that is sent or read piece by piece.
        """
        self.allowance = streamed_bytes / SLOWEST_BYTES_PER_SECOND
        """Seconds that it may take on top of LONGEST deadlines."""
        self._deadlines = deadlines
        self._is_overdue = False
        self.heard_at = time.monotonic()
        """When the last byte of the response came, or the last one of the request was sent."""
        self.started = self.heard_at if started is None else started

    def __enter__(self) -> Self:
        """Start to watch the current task."""
        task: asyncio.Task[Any] | None = asyncio.current_task(self._deadlines.loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._deadlines.add(self)
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Turn the cancellation by the deadline into TimeoutError; a cancellation from outside goes on."""
        self._deadlines.remove(self)
        is_ours = self._is_overdue and self._task.uncancel() <= self._cancelling
        if is_ours and error_type is asyncio.CancelledError:
            raise TimeoutError

    def expire(self) -> None:
        """Cancel the request, once."""
        if not self._is_overdue:
            self._is_overdue = True
            self._task.cancel()

    def note_waiting(self) -> None:
        """Note that the rest of the request has to come from elsewhere: the server owes nothing until `note_sent`."""
        self.heard_at = math.inf

    def note_sent(self) -> None:
        """Note that a part of the request was sent: the server may take its time from now on."""
        self.heard_at = time.monotonic()

    def note_progress(self) -> None:
        """Note that a part of the response has come: a slow copy is kept alive with white space."""
        self.heard_at = self._deadlines.last_response = time.monotonic()
