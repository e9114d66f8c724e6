"""How large an object may be that goes in one PUT: by the link, and by what the server has taken."""

import logging
import math
import time

from rowferry.errors import (
    AccessDenied,
    CutOff,
    NotFinished,
    ObjectError,
    ObjectRejected,
    ServerFault,
    Throttled,
    TimedOut,
    Unreachable,
)
from rowferry_worker.objects.link_trial import TooSlow, UnderWay

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
TOO_LARGE = frozenset({"EntityTooLarge", "MaxMessageLengthExceeded", "RequestEntityTooLarge"})
"""Error codes by which a server says that a body is too large. A proxy says so by a status alone: 413, or 403."""

PASSING = (ServerFault, Throttled, TimedOut, Unreachable)
"""What may be due to the size of the body, since a proxy may bound the time that one takes."""


_log = logging.getLogger(__name__)


class GoByParts:
    """An object had better go by parts: nothing of it was written."""


def is_tried(size_bytes: int) -> bool:
    """Return whether an object is so large that its PUT is only tried."""
    return size_bytes > TRIED_BYTES


class PutLimit:
    """The largest object that goes in one PUT, by the rate of the last pipes; shared by all of a migration."""

    def __init__(self) -> None:
        """Expect a fast link."""
        self._bytes_per_second = math.inf
        self._next_trial = -math.inf
        """When objects above `_passing_bytes` may be tried again, by time.monotonic()."""
        self._passing_bytes = TRIED_BYTES
        self.trials = UnderWay()
        """The PUTs that are being tried."""
        self.hashed = UnderWay()
        """The objects that are hashed here while they are passed on."""

    def allows(self, size_bytes: int) -> bool:
        """Return whether an object of this size passes soon enough to go in one PUT."""
        if size_bytes > self._passing_bytes and time.monotonic() < self._next_trial:
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

    def judge(self, error: ObjectError, size_bytes: int) -> GoByParts | NotFinished | None:
        """Return what becomes of an object whose PUT has failed; None: it ends with that error, as its parts would.

        GoByParts where a PUT that was tried has written nothing and parts may arrive. NotFinished in the place of a
        failure that may pass and would count as an attempt: the object may have arrived, so the next attempt looks
        first, and then sends parts. Other objects of such a size go by parts for a while.
        """
        is_slow = isinstance(error, TooSlow)
        is_page = isinstance(error, ObjectRejected | AccessDenied) and error.code.startswith("HTTP")
        is_refused = is_slow or is_page or error.code in TOO_LARGE
        may_pass = isinstance(error, PASSING) and not isinstance(error, CutOff) and error.code != "ObjectChanged"
        if not is_tried(size_bytes) or not (is_refused or may_pass):
            return None
        passing_bytes = max(TRIED_BYTES, size_bytes // 2) if is_slow else TRIED_BYTES
        is_on = time.monotonic() < self._next_trial
        self._passing_bytes = min(passing_bytes, self._passing_bytes) if is_on else passing_bytes
        self._next_trial = time.monotonic() + NO_TRIAL_SECONDS
        if is_refused:
            _log.info("a large object did not pass in one PUT, so it goes by parts", extra={"error": str(error)})
            return GoByParts()
        if error.costs_attempt or isinstance(error, Unreachable):  # which counts where the server can be reached
            words = f"it did not arrive in one PUT, so the next attempt sends parts: {error}"
            return NotFinished("NotFinished", words)
        return None
