"""How far a rate is cut while too much is refused, and to what it returns afterwards."""

from dataclasses import dataclass

from rowferry_worker.pacing.recovery import BELOW, Recovery

LEAST = 1.0
"""Requests per second that are always tried."""
FIRST_CUT, DEEPEST_CUT = 0.04, 0.5
"""What a cut takes; each that follows before the refusals have ended takes twice as much, up to the deepest."""
AFTER_SEARCH = 2
"""A rate that was searched for has outrun its bound by more: its cuts begin as if there had been so many."""
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

    def cut_by(self, share: float, rate: float, least: float, known: float = 0.0) -> float:
        """Return the rate after a cut, but for `least`, where a share is refused: what is let through is the bound.

        `known`: what was let through before.
        """
        let_through = rate * (1 - share)
        lowest = let_through * (1 - self._depth)
        self.goal, self.ceiling = max(least, BELOW * let_through, min(rate, BELOW * known)), rate
        self.count += 1
        return max(least, lowest)

    def cut_once(self, rate: float, least: float) -> float:
        """Return the rate after a single refusal, which tells nothing of the bound: it returns to what it was."""
        self.goal, self.ceiling = max(least, rate), rate
        return max(least, rate * (1 - FIRST_CUT))

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
