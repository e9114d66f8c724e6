"""How large an object may be that goes in one PUT: by what became of the last ones."""

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
from rowferry.s3.operations import PUT_LIMIT_BYTES
from rowferry_worker.objects.link_trial import TooSlow

TRIED_BYTES = 100 * 1024 * 1024
"""A larger object is tried: where its PUT fails it goes by parts.
Source: Amazon S3 User Guide, "Multipart upload overview": by parts from 100 MB on."""
ALWAYS_BYTES = 8 * 1024 * 1024
"""So much always goes in one PUT; a larger object must pass soon enough over one connection, or goes by parts: these
travel side by side, and an attempt that is cut short goes on where it was."""
NO_TRIAL_SECONDS = 600.0
"""After a PUT that was too slow, or was tried and failed, no object of such a size goes in one for so long."""
TOO_LARGE = frozenset({"EntityTooLarge", "MaxMessageLengthExceeded", "RequestEntityTooLarge"})
"""Error codes by which a server says that a body is too large. A proxy says so by a status alone: 413, or 403."""

PASSING = (ServerFault, Throttled, TimedOut, Unreachable)
"""What may be due to the size of the body, since a proxy may bound the time that one takes."""


_log = logging.getLogger(__name__)


class GoByParts:
    """An object had better go by parts: nothing of it was written."""


def is_judged(size_bytes: int) -> bool:
    """Return whether an object is so large that its PUT must pass soon enough."""
    return size_bytes > ALWAYS_BYTES


def is_tried(size_bytes: int) -> bool:
    """Return whether an object is so large that its PUT is only tried."""
    return size_bytes > TRIED_BYTES


class PutLimit:
    """The largest object that goes in one PUT, by what became of the last ones; shared by all of a migration."""

    def __init__(self) -> None:
        """Expect a fast link."""
        self._bytes = PUT_LIMIT_BYTES
        self._until = -math.inf
        """When larger objects may be tried again, by time.monotonic()."""
        self.is_hashing = False
        """Whether an object is hashed here while it is passed on."""

    def allows(self, size_bytes: int) -> bool:
        """Return whether an object of this size goes in one PUT."""
        return size_bytes <= self._bytes or time.monotonic() >= self._until

    def judge(self, error: ObjectError, size_bytes: int) -> GoByParts | NotFinished | None:
        """Return what becomes of an object whose PUT has failed; None: it ends with that error, as its parts would.

        GoByParts where it has written nothing and parts may arrive. NotFinished in the place of a failure that may pass
        and would count as an attempt: the object may have arrived, so the next attempt looks first, and then sends
        parts. Other objects of such a size go by parts for a while.
        """
        is_slow = isinstance(error, TooSlow)
        is_page = isinstance(error, ObjectRejected | AccessDenied) and error.code.startswith("HTTP")
        is_refused = is_slow or is_page or error.code in TOO_LARGE
        may_pass = isinstance(error, PASSING) and not isinstance(error, CutOff) and error.code != "ObjectChanged"
        if not is_slow and not (is_tried(size_bytes) and (is_refused or may_pass)):
            return None
        passing_bytes = max(ALWAYS_BYTES, size_bytes // 2) if is_slow else TRIED_BYTES
        is_on = time.monotonic() < self._until
        self._bytes = min(passing_bytes, self._bytes) if is_on else passing_bytes
        self._until = time.monotonic() + NO_TRIAL_SECONDS
        if is_refused:
            _log.info("a large object did not pass in one PUT, so it goes by parts", extra={"error": str(error)})
            return GoByParts()
        if error.costs_attempt or isinstance(error, Unreachable):  # which counts where the server can be reached
            words = f"it did not arrive in one PUT, so the next attempt sends parts: {error}"
            return NotFinished("NotFinished", words)
        return None
