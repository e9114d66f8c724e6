"""Tells refusals behind a bound from those of a server that refuses a share of all requests, however few come.

Behind a bound fewer requests are refused less: at 0.8 of what was let through, not at all. So what was let through is
kept, second by second; and where cuts do not end the refusals, a rate well below is tried. A worker among others cannot
tell by itself, since its own cut changes little: there the sum of all workers, which the heartbeat brings, must fall.
"""

from collections import deque
from dataclasses import dataclass, field

BELOW_BEST = 0.85
"""The part of what was let through below which a rate, or the fleet's sum, is low."""
NEVER_BELOW = 0.7
"""The part of what was let through below which no cut leads a lone worker, while few enough are refused."""
EXPERIMENT = 0.8
"""The part of what was let through at which refusals are no longer the bound's."""
EXPERIMENT_AFTER = 1.5
"""Seconds of cuts that do not help, after which the experiment is made."""
LOW_SECONDS = 1.5
"""How long a low rate must have been refused."""


@dataclass(slots=True)
class LetThrough:
    """What was let through since refusals began. Times are seconds of one clock."""

    is_alone: bool = True
    """Whether no other worker is live, as far as is known."""
    _second_began: float = 0.0
    _accepted: int = 0
    _seconds: deque[float] = field(default_factory=lambda: deque[float](maxlen=15))
    _fleet: deque[tuple[float, float]] = field(default_factory=lambda: deque[tuple[float, float]](maxlen=6))
    """The sum and the mean of the workers that are held back, at each heartbeat."""
    _low_since: float | None = None

    def begin(self, now: float) -> None:
        """Note that refusals have begun."""
        self._second_began, self._accepted, self._low_since = now, 0, None
        self._seconds.clear()
        self._fleet.clear()

    def note(self, now: float, accepted: int) -> None:
        """Count successes of the last moment."""
        self._accepted += accepted
        if now - self._second_began >= 1.0:
            self._seconds.append(self._accepted / (now - self._second_began))
            self._second_began, self._accepted = now, 0

    def note_fleet(self, per_second: float, workers: int) -> None:
        """Take in what all workers that are held back get through together."""
        self._fleet.append((per_second, per_second / workers))

    @property
    def best(self) -> float:
        """The most requests per second of the last seconds; 0 while no second has passed."""
        return max(self._seconds, default=0.0)

    @property
    def least(self) -> float:
        """The rate below which no cut leads."""
        return NEVER_BELOW * self.best if self.is_alone else 0.0

    def find_low_since(self, now: float, rate: float) -> float | None:
        """Return since when less is sent than was let through before; None while that is not so."""
        if self.is_alone:
            is_low = rate < BELOW_BEST * self.best
        else:
            is_low = bool(self._fleet) and all(
                self._fleet[-1][which] < BELOW_BEST * max(levels[which] for levels in self._fleet) for which in (0, 1)
            )
        self._low_since = (self._low_since or now) if is_low else None
        return self._low_since
