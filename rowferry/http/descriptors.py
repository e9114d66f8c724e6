"""How many files a process may have open, and what of that is left for connections to S3."""

import logging
import resource
from functools import cache

MAX_LIMIT = 65_536
"""The limit is not raised further than this: it is enough for three full sets of connections."""
RESERVED = 128
"""Descriptors that are left for PostgreSQL, name lookup, logs, credentials and the like."""

_log = logging.getLogger(__name__)


def raise_limit() -> int:
    """Raise this process's soft limit of open files to the hard one, at most to MAX_LIMIT, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_LIMIT
    wanted = MAX_LIMIT if hard == resource.RLIM_INFINITY else min(hard, MAX_LIMIT)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS has a lower bound, which it does not tell
            return soft
    return max(soft, wanted)


class Descriptors:
    """The share of it for all connections to S3. Event-loop thread only."""

    def __init__(self) -> None:
        """Raise the limit."""
        limit = raise_limit()
        self.max_used = max(limit - RESERVED, limit // 2)
        self.used = 0
        self._has_warned = False

    def grant(self, wanted: int) -> int:
        """Return how many of `wanted` connections may be opened; the log warns once where they are fewer."""
        granted = max(0, min(wanted, self.max_used - self.used))
        if granted < wanted and not self._has_warned:
            self._has_warned = True
            words = "the limit of open files (ulimit -n, LimitNOFILE) bounds the connections to S3"
            _log.warning(words, extra={"connections": self.max_used})
        return granted


@cache
def share_descriptors() -> Descriptors:
    """Return this process's descriptors."""
    return Descriptors()
