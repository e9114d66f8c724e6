"""How many slots a process may have behind PgBouncer, whose pool it cannot see: found by trying, one more at a time."""

import time
from collections.abc import Callable
from datetime import timedelta

GROWS_EVERY = timedelta(seconds=5)
"""How long a process keeps a number of slots before it tries one more."""
KEEPS_FOR = timedelta(minutes=10)
"""How long it tries none after a slot has waited for a connection."""
LONG_WAIT = timedelta(seconds=0.5)
"""A claim behind PgBouncer that takes longer has waited for a connection of its pool; it takes milliseconds else."""


class PoolBound:
    """Starts with one slot. Others share the pool: what one process finds is true until they come and go."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slots = 1
        self._grows_from = clock()

    @property
    def slots(self) -> int:
        """The most slots to have now."""
        grown = (self._clock() - self._grows_from) / GROWS_EVERY.total_seconds()
        return self._slots + max(0, int(grown))

    def note_wait(self, running: int) -> None:
        """Note that one of so many slots has waited for a connection: one less has none waiting."""
        self._slots = max(1, min(self.slots, running) - 1)
        self._grows_from = self._clock() + KEEPS_FOR.total_seconds()
