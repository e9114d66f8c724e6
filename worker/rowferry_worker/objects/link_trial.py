"""Whether a large object passes soon enough over one connection, judged while it passes."""

from rowferry.errors import ObjectError

JUDGED_AFTER = 2.0
"""How many seconds after its first bytes the pace is judged: TCP begins slowly, and buffers hide a slow link."""
REST_SECONDS = 30.0
"""It is slow where the pace so far leaves more than this to be waited for: longer than a batch's time budget, since
other objects may share the link."""


class TooSlow(ObjectError):
    """An object would take too long over one connection, so its write was given up: nothing was written."""

    def __init__(self, passed_bytes: int) -> None:
        """So much has passed."""
        super().__init__("TooSlow", f"the connection is slow, and was given up after {passed_bytes} bytes")


class LinkTrial:
    """Judges an object by its pace so far, from JUDGED_AFTER on: a slow one had better go by parts."""

    def __init__(self, size_bytes: int) -> None:
        """So much is to pass."""
        self._size = size_bytes
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
        would_pass = (self._passed - self._first) * REST_SECONDS
        if seconds >= JUDGED_AFTER and (self._size - self._passed) * seconds > would_pass:
            raise TooSlow(self._passed)
