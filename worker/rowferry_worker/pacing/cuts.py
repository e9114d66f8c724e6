"""How far a rate is cut while too much is refused, and to what it returns afterwards."""

from dataclasses import dataclass

from rowferry_worker.pacing.recovery import BELOW, Recovery

LEAST = 1.0
"""Requests per second that are always tried."""
FIRST_CUT, DEEPEST_CUT = 0.04, 0.5
"""What a cut takes; each that follows before the refusals have ended takes twice as much, up to the deepest."""
AFTER_SEARCH = 2
"""A rate that was searched for has outrun its bound by more: its cuts begin as if there had been so many."""
OVERSHOT = 0.6
"""The part that is left of it where a server lets nothing through: a full bucket hides a bound below half of it."""
RENEWED = 2
"""After so many cuts that did not help, the bound is lower than was thought."""
HOPELESS = 6
"""After so many, it is unknown."""
LOST, LOST_MOST = 0.5, 2.0
"""A rate that was cut below this part of what it was may return to so many times its goal, as the bound is unsure."""
MORE_THAN_FAIR = 1.2
"""Otherwise a worker returns to so many times the even share of all workers at the most."""


@dataclass(slots=True)
class Cuts:
    """The cuts since refusals began. Rates are requests per second."""

    count: int = 0
    cost: int | None = 0
    """How many requests were refused; None where the rate was searched for when that began."""
    began_at: float = LEAST
    """The rate when refusals began."""
    goal: float = LEAST
    """Where the rate is to return to, and ..."""
    ceiling: float = LEAST
    """... the lowest rate of which too much was refused."""

    def begin(self, rate: float, refused: int, *, is_searched: bool) -> None:
        """Note at what rate refusals have begun."""
        self.began_at = rate
        self.count, self.cost = (AFTER_SEARCH, None) if is_searched else (0, refused)

    def note(self, refused: int) -> None:
        """Count refusals."""
        if self.cost is not None:
            self.cost += refused

    @property
    def is_hopeless(self) -> bool:
        """Whether more cuts are of no use."""
        return self.count > HOPELESS

    def cut_by(self, share: float, rate: float, least: float) -> float:
        """Return the rate after a cut, but for `least`, where a share is refused: what is let through is the bound."""
        let_through = rate * (1 - share)
        lowest = let_through * (1 - self._depth)
        self.goal, self.ceiling = max(least, BELOW * let_through), rate
        self.count += 1
        return max(least, lowest)

    def cut_below(self, earlier: float, rate: float) -> float:
        """Return the rate after a cut where nothing is let through, so that only `earlier`, a lower rate, is known."""
        if self.cost is None:
            self.goal, self.ceiling = BELOW * earlier, rate
            lowest = OVERSHOT * earlier
        else:
            if self.count == 0 or self.count >= RENEWED:
                self.goal, self.ceiling = BELOW * earlier, rate
            lowest = self.goal * (1 - self._depth)
        self.count += 1
        return max(LEAST, lowest)

    @property
    def _depth(self) -> float:
        return min(DEEPEST_CUT, FIRST_CUT * 2.0**self.count)

    def recover(self, now: float, rate: float, fair: float | None) -> Recovery:
        """Return how the rate rises now that refusals have ended; `fair` is the even share, if it is known."""
        ceiling = self.ceiling
        if rate < LOST * self.began_at:
            ceiling = max(ceiling, min(self.began_at, LOST_MOST * self.goal))
        elif fair is not None:
            ceiling = min(ceiling, MORE_THAN_FAIR * fair)
        return Recovery.after(now, rate, self.goal, ceiling, self.cost)

    def scale(self, factor: float) -> None:
        """Take another part of the bound."""
        self.began_at, self.goal, self.ceiling = self.began_at * factor, self.goal * factor, self.ceiling * factor
