"""How large an object may be that goes in one PUT: by the link, and by what the server has taken."""

import math
import time

from rowferry.errors import ObjectError
from rowferry_worker.objects.link_trial import TooSlow

MOST_BYTES = 1024 * 1024 * 1024
"""The largest object that goes in one PUT: so much is sent anew after a failure, and many proxies bound bodies."""
TRIED_BYTES = 100 * 1024 * 1024
"""A larger object is tried: it must pass soon enough over one connection, and where its PUT fails it goes by parts.
Source: Amazon S3 User Guide, "Multipart upload overview": by parts from 100 MB on."""
ALWAYS_BYTES = 8 * 1024 * 1024
"""So much always goes in one PUT, and tells nothing of the rate: latency is most of its time."""
PUT_SECONDS = 10.0
"""How long one may take: half of the time budget, since a batch waits for its copies in flight. Where a connection
is slower than that, parts travel side by side, and an attempt that is cut short goes on where it was."""
SMOOTHING = 0.5
DRIFT = 1.02
"""Each object that goes by parts raises the rate that is believed in by 2 %, so that a link may become faster."""
NO_TRIAL_SECONDS = 600.0
"""After a PUT that was tried and failed, none is tried for so long."""
TOO_LARGE = frozenset({"EntityTooLarge", "HTTP 413", "MaxMessageLengthExceeded", "RequestEntityTooLarge"})
"""Error codes by which a server, or a proxy before it, says that a body is too large."""


class PutLimit:
    """The largest object that goes in one PUT, by the rate of the last pipes; shared by all of a migration."""

    def __init__(self) -> None:
        """Expect a fast link."""
        self._bytes_per_second = math.inf
        self._next_trial = -math.inf
        """When a large PUT may be tried again, by time.monotonic()."""

    def allows(self, size_bytes: int) -> bool:
        """Return whether an object of this size passes soon enough to go in one PUT."""
        if size_bytes > TRIED_BYTES and time.monotonic() < self._next_trial:
            return False
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

    def note_failed(self, error: ObjectError) -> bool:
        """Note that a PUT that was tried has failed; return whether its object may arrive by parts."""
        may_arrive = isinstance(error, TooSlow) or error.retryable or error.code in TOO_LARGE
        if may_arrive:
            self._next_trial = time.monotonic() + NO_TRIAL_SECONDS
        return may_arrive
