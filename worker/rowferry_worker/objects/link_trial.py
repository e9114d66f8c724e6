"""Whether a large object passes soon enough over one connection, judged while it passes."""

from collections.abc import Generator
from contextlib import contextmanager

from rowferry.errors import ObjectError

JUDGED_AFTER = 2.0
"""How many seconds after its first bytes the pace is judged: TCP begins slowly, and buffers hide a slow link."""
REST_SECONDS = 20.0
"""It is slow where the pace so far leaves more than this to be waited for, as long as a batch's time budget; twice as
much where other objects share the link."""


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
    """Judges an object by its pace so far, from JUDGED_AFTER on: a slow one had better go by parts."""

    def __init__(self, size_bytes: int, trials: UnderWay) -> None:
        """`size_bytes` are to pass; `trials` says whether others pass beside it."""
        self._size = size_bytes
        self._trials = trials
        self.begin()

    def begin(self) -> None:
        """Begin, or begin anew, at the first byte."""
        self._began: float | None = None
        self._first = self._passed = 0

    def note(self, size_bytes: int, now: float) -> None:
        """Note that so much more has passed; `now` is any clock's time, in seconds. Raises TooSlow."""
        self._passed += size_bytes
        if self._began is None:  # the time until the first bytes is latency
            self._began, self._first = now, size_bytes
            return
        seconds = now - self._began
        rest_seconds = REST_SECONDS * min(2, max(1, self._trials.under_way))
        would_pass = (self._passed - self._first) * rest_seconds
        if seconds >= JUDGED_AFTER and (self._size - self._passed) * seconds > would_pass:
            raise TooSlow(self._passed)
