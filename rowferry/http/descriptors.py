"""How many files a process may have open, and what of that is left for connections to S3."""

import logging
import resource

from rowferry.per_process import once_a_process

MOST = 65_536
"""The limit is not raised further than this, however much is allowed: enough for three full sets of connections."""
RESERVED = 128
"""Descriptors that are left for PostgreSQL, the look-up of names, logs, credentials and the like."""

_log = logging.getLogger(__name__)


def raise_limit() -> int:
    """Raise this process's soft limit of open files to the hard one, at most to MOST, and return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS has a bound of its own, which it does not tell here
            return soft
    return max(soft, wanted)


class Descriptors:
    """What all connections of a process to S3 may use of it. To be used on the event-loop thread only."""

    def __init__(self) -> None:
        """Raise the limit, and say so where it bounds."""
        limit = raise_limit()
        self.most = max(limit - RESERVED, limit // 2)
        self.used = 0
        self._has_said = False

    def grant(self, wanted: int) -> int:
        """Return how many of `wanted` connections more may be opened; the log says it once where they are fewer."""
        granted = max(0, min(wanted, self.most - self.used))
        if granted < wanted and not self._has_said:
            self._has_said = True
            words = "the limit of open files (ulimit -n, LimitNOFILE) bounds the connections to S3"
            _log.warning(words, extra={"connections": self.most})
        return granted


share_descriptors = once_a_process(Descriptors)
"""Returns this process's descriptors."""
