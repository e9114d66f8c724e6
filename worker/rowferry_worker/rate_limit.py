"""How fast a worker may go where all workers share a bound: it takes an even part of it."""

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Lock

BURST = timedelta(seconds=0.1)
"""How much of an unused moment may be caught up with."""
NO_WAIT = timedelta(0)


class RateLimiter:
    """Gives turns at a rate. Source: the generic cell rate algorithm (ITU-T I.371, 1996), as a virtual schedule."""

    def __init__(self, per_second: Callable[[], float | None]) -> None:
        """`per_second`: the rate of this worker at this moment; None: no bound."""
        self._per_second = per_second
        self._next = 0.0
        self._turn = Lock()

    def reserve(self, turns: int = 1) -> timedelta:
        """Take so many turns and return how long to wait before using them; zero while there is room."""
        rate = self._per_second()
        if rate is None:
            return NO_WAIT
        now = time.monotonic()
        with self._turn:
            begin = max(self._next, now - BURST.total_seconds())
            self._next = begin + turns / rate
        return timedelta(seconds=max(0.0, begin - now))
