"""How a rate rises again after refusals have ended: a pure function of time."""

from dataclasses import dataclass

BELOW = 0.97
"""Where a rate returns to, as a share of what was refused."""
RETURN_SECONDS = 2.0
"""How long the rate takes to return to its goal, ..."""
APPROACH_SECONDS = 3.0
"""... and from there to just below the lowest rate that was refused, where that is higher."""
STAY_LEAST, STAY_MOST = 2.0, 30.0
"""How long it stays there."""
RISE, RISE_SECONDS, RISE_LONGEST = 0.04, 4.0, 30.0
"""Afterwards it grows by such a share in so many seconds, and faster and faster, since the bound may have gone."""
PRICE, PRICE_SECOND = 0.015, 0.15
"""The refusals that a probe may cost: as a share of the requests until the next one, and a second."""
FEW = 8.0
"""A rate of fewer requests a second takes longer for all of it, three times as long at the most."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What the cuts of a rate have led to. Rates are requests per second, times seconds of one clock."""

    since: float
    """When the refusals had ended."""
    lowest: float
    """The rate then."""
    goal: float
    """The rate to return to at first."""
    ceiling: float
    """The lowest rate of which too much was refused."""
    stay: float = STAY_LEAST

    @classmethod
    def after(cls, since: float, lowest: float, goal: float, ceiling: float, cost: int | None) -> "Recovery":
        """Return what follows cuts that cost so many refusals.

        The stay makes about one request in a hundred refused; it is short where the bound is not known (None).
        """
        stay = STAY_LEAST
        if cost is not None:
            stay = max(STAY_LEAST, min(STAY_MOST, cost / (PRICE * lowest + PRICE_SECOND)))
        return cls(since, lowest, max(goal, lowest), max(ceiling, lowest), stay)

    def scaled(self, factor: float) -> "Recovery":
        """Return the same for a part of the rate."""
        return Recovery(self.since, self.lowest * factor, self.goal * factor, self.ceiling * factor, self.stay)

    def find_rate(self, now: float) -> float:
        """Return the rate at a moment."""
        unit = max(1.0, min(2.0, FEW / self.goal))
        since = (now - self.since) / unit
        if since < RETURN_SECONDS:  # as CUBIC does (RFC 9438)
            return self.goal - (self.goal - self.lowest) * (1 - since / RETURN_SECONDS) ** 3
        since -= RETURN_SECONDS
        highest = max(self.goal, BELOW * self.ceiling)
        approach = APPROACH_SECONDS if highest > self.goal else 0.0
        if since < approach:
            return self.goal + (highest - self.goal) * since / approach
        beyond = max(0.0, since - approach - self.stay / unit) / RISE_SECONDS
        return highest * (1 + RISE * min(beyond, RISE_LONGEST) ** 3)
