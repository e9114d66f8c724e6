"""Tells refusals behind a bound from those of a server that refuses a share of all requests, however few come.

Behind a bound no more is let through when more is sent. So as refusals begin, more is sent for a moment, and compared
(`GrowthTest`). Each worker can do so by itself, and they do at the same time where all are refused. Later a rate well
below what was let through tells as well, as a bound refuses nothing there (`LetThrough`): the rate of a worker that is
alone, or the sum of all workers that the heartbeat brings.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from rowferry_worker.pacing.tenths import Tenth, Tenths

BELOW_BEST = 0.85
"""The part of what was let through below which a rate, or the fleet's sum, is low."""
NEVER_BELOW = 0.7
"""The part of what was let through below which no cut leads a lone worker, while few enough are refused."""
EXPERIMENT = 0.8
"""The part of what was let through at which refusals are no longer the bound's."""
EXPERIMENT_AFTER = 1.5
"""Seconds of cuts that do not help, after which the experiment is made."""
LOW_SECONDS = 1.0
"""How long a low rate must have been refused."""

GROWN, GROWN_AMONG = 1.5, 2.5
"""A bound does not let so many times more through when more is sent; among others a part of it may grow that much."""
CERTAIN = 0.2
"""A share of refusals that is no habit's."""
RESUMED = 5.0
"""Seconds without an excess after which the test begins anew."""
FALLEN = 0.5
"""The part of what was let through to which no bound leads a worker that is alone."""
SMALL = 20.0
"""Requests per second so few that more of them cost the server nothing."""
KEPT_TO = 0.03
"""A share of refusals that is larger than what a worker alone meets at a bound that it keeps to."""
GROWTH_EVIDENCE = 6
"""Refusals that tell their share."""


class Window(NamedTuple):
    """What came back in a span of time."""

    seconds: float
    accepted: int
    refused: int


@dataclass(slots=True)
class GrowthTest:
    """Made as refusals begin: sends more, and looks whether more is let through, which no bound does."""

    _began: float | None = None
    _refused_at: float = 0.0
    _most: float = 0.0
    """Successes per second as the test began, at the most."""
    _bound: float = 0.0
    _not_before: float = 0.0
    _pause: float = 10.0
    _since: list[int] = field(default_factory=lambda: [0, 0])
    """Successes and refusals since the last test."""

    @property
    def has_begun(self) -> bool:
        """Whether it is being made."""
        return self._began is not None

    def goes_on(self, now: float, window: Window, latency: float) -> bool:
        """Return whether it is too early to call it a bound."""
        _, accepted, refused = window
        if refused - math.sqrt(refused) > CERTAIN * (refused + accepted) or now < self._not_before:
            return False
        if self._began is None or now - self._refused_at > RESUMED:
            self._began = now
            self._most = (accepted + 2 * math.sqrt(accepted + 1)) / window.seconds
        self._refused_at = now
        return now - self._began < max(1.0, 6 * latency)

    def is_won(self, window: Window, *, is_alone: bool) -> bool:
        """Return whether clearly more is let through than when refusals began."""
        least = (window.accepted - 2 * math.sqrt(window.accepted)) / window.seconds
        return least > (GROWN if is_alone else GROWN_AMONG) * self._most

    def find_share(self, tenths: Tenths) -> float:
        """Return the most that is refused by habit, as a share; 0 while there is too little to tell."""
        assert self._began is not None
        _, accepted, refused = tenths.count(self._began)
        if refused < GROWTH_EVIDENCE:
            return 0.0
        self._began = None
        return min(CERTAIN, (refused + 2 * math.sqrt(refused + 1)) / (accepted + refused))

    def end(self, now: float, per_second: float) -> None:
        """Note that it was a bound, and what was let through."""
        self._bound = per_second
        self._began, self._not_before = None, now + self._pause
        self._pause = min(60.0, 2 * self._pause)
        self._since = [0, 0]

    def is_due(self, now: float, rate: float, tenth: Tenth) -> bool:
        """Return whether refusals have gone on although cuts have led far below what was let through."""
        since = self._since
        since[0] += tenth.accepted
        since[1] += tenth.refused
        if now < self._not_before or rate > max(SMALL, FALLEN * self._bound) or since[1] < GROWTH_EVIDENCE:
            return False
        if since[1] - math.sqrt(since[1]) > KEPT_TO * sum(since):
            self._began = None
            return True
        return False


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
    _own: float = 0.0
    """The rate of this worker at the last heartbeat."""
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

    def note_fleet(self, per_second: float, workers: int, own: float) -> None:
        """Take in what all workers that are held back get through together, and the rate of this one."""
        self._fleet.append((per_second, per_second / workers))
        self._own = own

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
            is_low = (
                bool(self._fleet)
                and rate <= self._own
                and all(
                    self._fleet[-1][which] < BELOW_BEST * max(levels[which] for levels in self._fleet)
                    for which in (0, 1)
                )
            )
        self._low_since = (self._low_since or now) if is_low else None
        return self._low_since
