"""Whether a large object passes soon enough over one connection, judged while it passes."""

from collections.abc import Generator
from contextlib import contextmanager

from rowferry.errors import ObjectError

FIRST_SECONDS, LONGEST_SECONDS = 0.2, 4.0
"""How long the first interval is; each is twice as long as the one before, up to the longest."""
REST_SECONDS = 20.0
"""An interval is slow whose pace leaves more than this to be waited for, as long as a batch's time budget; twice as
much where other objects share the link."""
GROWTH = 1.5
"""A connection that is so much faster than in the interval before may still come to its pace: TCP begins slowly."""


class TooSlow(ObjectError):
    """An object would take too long over one connection, so its write was given up: nothing was written."""

    def __init__(self, passed_bytes: int) -> None:
        """So much has passed."""
        super().__init__("TooSlow", f"the connection is slow, and was given up after {passed_bytes} bytes")


class UnderWay:
    """How many of one kind are under way, of a process's migration."""

    def __init__(self) -> None:
        """Begin with none."""
        self.under_way = 0

    @contextmanager
    def counting(self, one: bool) -> Generator[None]:
        """Count `one` more within the block."""
        self.under_way += one
        try:
            yield
        finally:
            self.under_way -= one


class LinkTrial:
    """Two slow intervals on end, the second not much faster than the first, and the rest had better go by parts."""

    def __init__(self, size_bytes: int, trials: UnderWay) -> None:
        """`size_bytes` are to pass; `trials` says whether others pass beside it."""
        self._size = size_bytes
        self._trials = trials
        self.begin()

    def begin(self) -> None:
        """Begin, or begin anew, at the first byte."""
        self._missing = self._size
        self._interval = FIRST_SECONDS
        self._began: float | None = None
        self._in_interval = 0
        self._slow_rate: float | None = None
        """Bytes a second of the last interval, if it was slow."""

    def note(self, size_bytes: int, now: float) -> None:
        """Note that so much more has passed; `now` is any clock's time, in seconds. Raises TooSlow."""
        self._missing -= size_bytes
        if self._began is None:  # the time until the first bytes is latency
            self._began = now
            return
        self._in_interval += size_bytes
        seconds = now - self._began
        if seconds < self._interval:
            return
        if self._judge(self._in_interval / seconds):
            raise TooSlow(self._size - self._missing)
        self._began, self._in_interval = now, 0
        self._interval = min(2 * self._interval, LONGEST_SECONDS)

    def _judge(self, rate: float) -> bool:
        rest_seconds = REST_SECONDS * min(2, max(1, self._trials.under_way))
        is_slow, before = self._missing > rate * rest_seconds, self._slow_rate
        self._slow_rate = rate if is_slow else None
        return is_slow and before is not None and rate < before * GROWTH
