"""What came back at a rate, and whether more of it was refused than probing costs."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from rowferry_worker.pacing.habit import Habit
from rowferry_worker.pacing.tenths import TENTH_SECONDS, Tenth, Tenths

TOLERATED, TOLERATED_SECOND = 0.01, 0.15
"""The refusals that lead to no cut: as a share of the requests, and a second.

A slow worker is one of many, whose requests meet its own at random.
"""
HABIT_MORE, HABIT_ERRORS = 1.0, 2.0
"""With a habit, so many times its share is tolerated, and refusals beyond it by so many standard errors."""
WINDOW_SECONDS, WINDOW = 3.0, 40
"""So long is looked back, and so many requests."""
RECENT_SECONDS, RECENT = 0.3, 10
"""The same for what is refused just now."""
CLOSED, CLOSED_FEW, CLOSED_EVIDENCE = 0.75, 0.4, 3
"""A server that refuses a larger share counts what it refuses as well.

Among few requests it is a smaller share, as they tell little of a bound; so many refusals at least.
"""


class Count(NamedTuple):
    """What came back in so many seconds."""

    seconds: float
    accepted: int
    refused: int

    @property
    def is_few(self) -> bool:
        """Whether it is too little to tell a bound."""
        return self.accepted + self.refused < RECENT

    @property
    def is_closed(self) -> bool:
        """Whether next to nothing was let through."""
        share = CLOSED_FEW if self.is_few else CLOSED
        return self.refused >= CLOSED_EVIDENCE and self.refused > share * (self.accepted + self.refused)

    def is_above(self, share: float) -> bool:
        """Return whether a larger share was refused."""
        return self.refused > share * (self.accepted + self.refused)

    @property
    def sure_share(self) -> float:
        """The share that was refused, less one standard error: few refusals prove little."""
        return (self.refused - math.sqrt(self.refused)) / max(1, self.accepted + self.refused)


@dataclass(slots=True)
class Evidence:
    """Counts what comes back. Times are seconds of one clock."""

    began: float
    latency: float = 0.1
    """The seconds that successes took lately."""
    habit: Habit = field(default_factory=Habit)
    cut_at: float = -math.inf
    """When the rate was cut, and ..."""
    paused_until: float = -math.inf
    """... until when nothing was sent."""
    tenths: Tenths = field(init=False)

    def __post_init__(self) -> None:
        """Begin to count."""
        self.tenths = Tenths(self.began)

    def end_tenth(self, now: float) -> Tenth:
        """End the present tenth of a second and return it."""
        tenth = self.tenths.end(now)
        if self.habit.share:
            _, accepted, refused = self.tenths.count(max(now - WINDOW_SECONDS, self.cut_at + self.latency))
            self.habit.lower(accepted, refused)
        return tenth

    @property
    def settled(self) -> float:
        """When what was sent before the last cut had come back."""
        settled = self.cut_at + min(1.0, max(TENTH_SECONDS, 0.5 * self.latency))
        return max(settled, self.paused_until + min(1.0, self.latency))  # refusals come back sooner than successes

    def count(self, since: float = -math.inf) -> Count:
        """Return what came back since a moment, but nothing of what was sent before the last cut."""
        return Count(*self.tenths.count(max(since, self.settled)))

    def count_last(self, now: float, rate: float) -> Count:
        """Return what came back lately."""
        return self.count(now - max(WINDOW_SECONDS, WINDOW / rate))

    def count_recent(self, now: float, rate: float) -> Count:
        """Return what came back just now."""
        return self.count(now - max(RECENT_SECONDS, RECENT / rate))

    def is_excess(self, accepted: int, refused: int, rate: float | None) -> bool:
        """Return whether more is refused than what is tolerated, and by habit; None: no rate is known yet."""
        share = self.habit.share
        least = refused - HABIT_ERRORS * math.sqrt(refused) if share else refused
        tolerated = TOLERATED + TOLERATED_SECOND / rate if rate else TOLERATED
        return least > (tolerated + HABIT_MORE * share) * (accepted + refused)
