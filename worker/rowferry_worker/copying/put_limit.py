"""How large an object may be that goes in one PUT, by the pace of the link."""

import math

ALWAYS_BYTES = 8 * 1024 * 1024
"""So much always goes in one PUT, and tells nothing of the rate: latency is most of its time."""
PUT_SECONDS = 10.0
"""How long one may take: half of the time budget, since a batch waits for its copies in flight. Where a connection
is slower than that, parts travel side by side, and an attempt that is cut short goes on where it was."""
SMOOTHING = 0.5
DRIFT = 1.02
"""Each object that goes by parts raises the rate that is believed in by 2 %, so that a link may become faster."""


class PutLimit:
    """The largest object that goes in one PUT, by the rate of the last pipes; shared by all of a migration."""

    def __init__(self) -> None:
        """Expect a fast link."""
        self._bytes_per_second = math.inf
        self.hashed = 0
        """How many objects are hashed here while they are passed on."""

    def allows(self, size_bytes: int) -> bool:
        """Return whether an object of this size passes soon enough to go in one PUT."""
        if size_bytes <= max(ALWAYS_BYTES, self._bytes_per_second * PUT_SECONDS):
            return True
        self._bytes_per_second *= DRIFT
        return False

    def note(self, size_bytes: int, seconds: float) -> None:
        """Note how long an object took from its headers to the end of the PUT."""
        if size_bytes > ALWAYS_BYTES:
            rate = size_bytes / max(seconds, 1e-3)
            known = self._bytes_per_second
            self._bytes_per_second = rate if known == math.inf else known + SMOOTHING * (rate - known)
