"""The rate of a queue over time: its intervals, and what was finished in each. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rowferry.batch import UNSETTLED, Outcome

MOST_INTERVALS = 120
"""Bars of a chart: each is three pixels wide on a telephone."""
STEPS = [
    timedelta(seconds=seconds)
    for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)
]
LEADING = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Interval:
    """What was finished in one or several steps of a chart."""

    begins_at: datetime
    seconds: float
    counts: Mapping[str, int]
    """Entries by outcome, without zeros."""

    @property
    def total(self) -> int:
        """Return all its entries."""
        return sum(self.counts.values())

    @property
    def rate(self) -> float:
        """Return entries a second."""
        return self.total / self.seconds

    @property
    def unsettled(self) -> dict[str, int]:
        """Return those that need an operator: among thousands they are too low to see."""
        return {name: self.counts[name] for name in UNSETTLED if name in self.counts}


@dataclass(frozen=True, slots=True)
class Span:
    """The time that the rate of a queue is drawn over, in steps from a round time (UTC) on.

    The first and the last step may be cut short, but count as half a one at least: what ends at the begin of a step was
    worked on before it.
    """

    began_at: datetime
    ended_at: datetime

    @property
    def step(self) -> timedelta:
        """Return the shortest round length of which MOST_INTERVALS - 1 cover it; above days, whole days."""
        shortest = (self.ended_at - self.began_at) / (MOST_INTERVALS - 1)
        return next((step for step in STEPS if step >= shortest), timedelta(days=math.ceil(shortest / STEPS[-1])))

    @property
    def begins_at(self) -> datetime:
        """Return when the first step begins."""
        return EPOCH + (self.began_at - EPOCH) // self.step * self.step

    def cut(self, counts: Mapping[datetime, Mapping[str, int]]) -> list[Interval]:
        """Return its steps, with what was finished in those that begin so; nothing in the others."""
        begins = [self.begins_at]
        while begins[-1] + self.step <= self.ended_at:
            begins.append(begins[-1] + self.step)
        ends = [*begins[1:], self.ended_at]
        lengths = [max(end - max(begin, self.began_at), self.step / 2) for begin, end in zip(begins, ends, strict=True)]
        return [
            Interval(begin, length.total_seconds(), counts.get(begin, {}))
            for begin, length in zip(begins, lengths, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Chart:
    """The rate of a queue over time."""

    queue: str
    step: timedelta
    intervals: Sequence[Interval]

    @property
    def outcomes(self) -> list[str]:
        """Return those that occur."""
        return [str(name) for name in Outcome if any(name in one.counts for one in self.intervals)]

    @property
    def top(self) -> float:
        """Return the highest number of its axis."""
        return round_up(self.busiest.rate)

    @property
    def busiest(self) -> Interval:
        """Return the interval with the highest rate."""
        return max(self.intervals, key=lambda one: one.rate)

    @property
    def ends_at(self) -> datetime:
        """Return when its last interval ends."""
        return self.intervals[-1].begins_at + self.step

    @property
    def clock(self) -> str:
        """Return how its times are written: with seconds where steps are short, with dates where there are several."""
        if self.step >= timedelta(days=1):
            return "%Y-%m-%d"
        clock = "%H:%M:%S" if self.step < timedelta(minutes=1) else "%H:%M"
        return clock if self.intervals[0].begins_at.date() == self.ends_at.date() else f"%m-%d {clock}"


def round_up(highest: float) -> float:
    """Return the top of an axis: the next number of one or two round digits that is not below `highest`; 1 for 0."""
    if highest <= 0:
        return 1
    power = 10.0 ** int(f"{highest:e}".partition("e")[2])
    return next(lead * power for lead in LEADING if lead * power >= highest * 0.999999)
