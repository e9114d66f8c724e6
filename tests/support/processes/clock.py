"""Clocks of tests: one that a test moves by hand, and one that goes slower the busier the machine is."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

CORES = os.cpu_count() or 1
LONGEST_STEP_SECONDS = 1.0
"""What lies longer between two looks at the clock, was a pause of the whole machine."""


class Clock:
    """A clock that stands still until it is told to move; it takes the place of a module's `time`."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += seconds


def count_running() -> int:
    """Return how many threads of this machine run or wait for a core, this one included; 1 where Linux does not say."""
    with suppress(OSError, ValueError, IndexError):
        return max(1, int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]))
    return 1


class LoadClock:
    """Counts the seconds that one thread would have had on a core of its own.

    While ten times as many threads want to run as there are cores, a second on the wall is a tenth of a second here. So
    a deadline on this clock is short on a quiet machine and long on a busy one. It only sees the load at the moments
    when it is looked at: look every few hundredths of a second.
    """

    def __init__(
        self, running: Callable[[], int] = count_running, now: Callable[[], float] = time.monotonic, cores: int = CORES
    ) -> None:
        self._running, self._now, self._cores = running, now, cores
        self._began = self._looked_at = now()
        self._seconds = 0.0

    def look(self) -> float:
        """Return the seconds counted so far."""
        now = self._now()
        passed, self._looked_at = now - self._looked_at, now
        self._seconds += min(passed, LONGEST_STEP_SECONDS) * min(1.0, self._cores / self._running())
        return self._seconds

    def __str__(self) -> str:
        return f"{self._seconds:.0f} s of a core, {self._looked_at - self._began:.0f} s on the wall"
