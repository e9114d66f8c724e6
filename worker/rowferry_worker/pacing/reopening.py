"""At what rate to go on after a server has let nothing through: between what it has let through and what it refused.

A server that counts what it refuses lets nothing through until that is forgotten. Then nothing is left of what it
allows at once. So what it lets through from then until it refuses again is its bound, or less where less was asked for;
and the rate that it refuses then is above its bound.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from rowferry_worker.pacing.tenths import Tenths

ASKED, ASKED_MOST = 0.12, 10.0
"""While it lets nothing through it is asked at this part of the rate, and so many times a second at most, ..."""
ASKED_LESS, ASKED_LEAST = 0.6, 0.3
"""... less after each refusal, by this part; where the bound is known roughly, not below that part of it."""
KNOWN_SECONDS = 0.5
"""What was let through in a shorter time tells nothing."""
FIRST = 0.5
"""The part of what was let through at first, where the server may have saved it up."""
DOWN, DOWN_AGAIN = 0.4, 0.25
"""The part of a rate that was refused at once, and of the next one that is."""
LONG_SECONDS = 4.0
"""What was let through in so long a time is known well, ..."""
SAME = 0.1
"""... and what is the same again but for this part of it."""
EMPTY = 0.35
"""The part of the time between the last refusal and the first success after which nothing was left."""
SURE = 1.3
"""A bound is known when the refused rate is at most so many times what was let through."""
MORE = 1.05
"""It is known as well when the rate was never less than so many times what was let through."""
UP = 0.25
"""Else the part of the way between them at which to go on, by their logarithms."""
BELOW = 0.97
"""The part of what was let through that is used."""


class Resumption(NamedTuple):
    """How to go on. Rates are requests per second."""

    per_second: float
    ceiling: float
    """Where the bound may be at most, as far as is known."""
    is_known: bool = False
    """Whether the bound is known so well that it is worth to stay below it."""


@dataclass(slots=True)
class Reopening:
    """What a server has let through since it last let nothing through. Times are seconds of one clock."""

    since: float
    """When it was open again."""
    is_first: bool = True
    """Whether it was never closed."""
    let_through: float = 0.0
    """What it has let through, per second, before it closed; 0: unknown."""
    resumption: Resumption = field(default=Resumption(1.0, 1.0))
    """How to go on when it is open again."""
    refused_at: float = -math.inf
    """When a request was refused last."""
    resumed: float = math.inf
    """The lowest rate since it was open again."""
    _has_failed: bool = False
    """Whether the last resumption was refused at once."""
    _accepted: float = 0.0
    _until: float = -math.inf

    @classmethod
    def before(cls, now: float, tenths: Tenths) -> "Reopening":
        """Return what is known when requests are refused for the first time."""
        seconds, accepted, _ = tenths.count(-math.inf)
        return cls(now - seconds, _accepted=accepted, _until=now)

    def note(self, now: float, accepted: float, refused: int) -> None:
        """Take in what came back in a moment; `accepted`: with the share of it that is refused by habit."""
        if accepted >= refused and accepted:
            self._accepted += accepted
            self._until = now

    def open(self, now: float, accepted: int) -> None:
        """Note that requests are let through again, so many in the last moment."""
        self.resumed = self.resumption.per_second
        self.since = self.refused_at + EMPTY * (now - self.refused_at)
        self._accepted, self._until, self.is_first = accepted, now, False

    def scale(self, factor: float) -> None:
        """Take another part of the bound."""
        self.let_through *= factor
        self.resumed *= factor
        self._accepted *= factor

    @property
    def asked(self) -> float:
        """How many requests a second tell whether a server that lets nothing through is open again."""
        return min(ASKED_MOST, ASKED * self.resumption.per_second)

    def ask_less(self, per_second: float) -> float:
        """Return the same after a refusal at this rate."""
        return max(ASKED_LESS * per_second, ASKED_LEAST * self.asked if self.let_through else 0.0)

    @property
    def known(self) -> float:
        """What is let through, per second, since it was open again; 0: unknown."""
        seconds = self._until - self.since
        return self._accepted / seconds if seconds >= KNOWN_SECONDS and not self.is_first else 0.0

    def close(self, refused: float) -> None:
        """Decide how to go on now that a rate is refused: nothing is let through."""
        seconds = self._until - self.since
        through = self._accepted / seconds if seconds >= KNOWN_SECONDS else 0.0
        self.resumption = self._find_first(refused, through) if self.is_first else self._find_next(refused, through)

    def _find_first(self, refused: float, through: float) -> Resumption:
        return Resumption(FIRST * min(refused, through or refused), refused)

    def _find_next(self, refused: float, through: float) -> Resumption:
        has_failed, self._has_failed = self._has_failed, not through
        is_same = abs(through - self.let_through) < SAME * self.let_through
        is_known = is_same or self._until - self.since > LONG_SECONDS
        if through:
            self.let_through = min(through, refused)
        elif self.let_through > 0.95 * refused:
            self.let_through = 0.0
        if not self.let_through:
            return Resumption((DOWN_AGAIN if has_failed else DOWN) * refused, refused)
        if self.resumed > MORE * self.let_through:  # it was more than the bound from the beginning
            return Resumption(BELOW * self.let_through, self.let_through, is_known)
        ratio = refused / self.let_through
        if ratio <= SURE:
            return Resumption(BELOW * self.let_through, math.sqrt(self.let_through * refused), is_known)
        return Resumption(self.let_through * ratio**UP, refused)
