"""Turns at a rate: a bound of the plan, of which every worker takes an even part, or a rate that was learned."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from rowferry.s3.retry import LONGEST_TURN

BURST_SECONDS = 0.1
"""How much of an unused moment may be caught up with."""
NO_WAIT = timedelta(0)


class Turns:
    """Gives turns at a rate. Source: the generic cell rate algorithm (ITU-T I.371, 1996), as a virtual schedule."""

    __slots__ = ("_burst", "_held_until", "_longest", "_next", "_rate", "_waits")

    def __init__(self, burst_seconds: float, longest_seconds: float = math.inf) -> None:
        """`burst_seconds`: how much of an unused moment may be caught up with; `longest_seconds`: the longest wait."""
        self._burst = burst_seconds
        self._longest = longest_seconds
        self._next = 0.0
        self._rate = 0.0
        self._held_until = -math.inf
        self._waits = (0, 0.0)

    def reserve(self, now: float, rate: float) -> float:
        """Take a turn at `rate` a second and return the seconds to wait before using it.

        More than `longest_seconds`: none was taken. Ask again after them, since the rate may be another by then.
        """
        if rate != self._rate:
            first = max(now, self._held_until)
            if self._next > first and rate > self._rate:  # those who wait for turns at the old rate come sooner now
                self._next = first + (self._next - first) * self._rate / rate
            self._rate = rate
        begin = max(self._next, self._held_until, now - self._burst)
        wait = max(0.0, begin - now)
        self._waits = self._waits[0] + 1, self._waits[1] + wait
        if wait <= self._longest:
            self._next = begin + 1 / rate
        return wait

    def take_mean_wait(self) -> float | None:
        """Return the seconds that turns have waited on average since that was last asked; None where there was none."""
        (count, seconds), self._waits = self._waits, (0, 0.0)
        return seconds / count if count else None

    def give_back(self) -> None:
        """Let somebody else have a turn that was taken last."""
        if self._rate:
            self._next -= 1 / self._rate

    def hold_until(self, moment: float) -> None:
        """Give no turn before `moment`."""
        self._held_until = max(self._held_until, moment)


@dataclass(slots=True, eq=False)
class Bound:
    """A bound of the plan on requests. Used on the event loop only."""

    per_second: Callable[[], float]
    """Returns the part of this worker at this moment."""
    turns: Turns = field(default_factory=lambda: Turns(BURST_SECONDS, LONGEST_TURN.total_seconds()))

    def reserve(self, now: float) -> float:
        """Take a turn, as `Turns.reserve`."""
        return self.turns.reserve(now, self.per_second())
