"""An estimate and how far off it may be: totals by a stratified bootstrap, shares by Wilson's interval. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from random import Random

REPLICATES = 300
"""Resamples; enough for a 95 % interval to two digits."""
RULE_OF_THREE = 3.0
LEAST_TAIL = 10
STEEPEST_TAIL = 20.0
Z = 1.96
"""Standard errors that hold 95 % of a normal distribution to both sides."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval; an exact number has three equal values."""

    estimate: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> "Interval":
        return cls(value, value, value)

    @property
    def is_exact(self) -> bool:
        """Return whether there is no uncertainty."""
        return self.low == self.high

    def plus(self, other: "Interval") -> "Interval":
        """Return the sum; the bounds are added, which is wider than need be where the errors are independent."""
        return Interval(self.estimate + other.estimate, self.low + other.low, self.high + other.high)

    def raised(self, number: float) -> "Interval":
        """Return the interval with an upper bound that is higher by a number."""
        return Interval(self.estimate, self.low, self.high + number)

    def times(self, factor: float) -> "Interval":
        """Return the product with a factor that is not negative."""
        return Interval(self.estimate * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Stratum:
    """The entries of one table, and some of them looked at."""

    population: float
    standard_error: float
    """Of `population`; 0: it was counted."""
    rows: Sequence[tuple[float, ...]]
    """One number for each column and sampled entry."""


def estimate_totals(strata: Sequence[Stratum], columns: int, *, seed: int = 1) -> list[Interval]:
    """Return the total of each column over all entries.

    Rows are resampled within each table (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, ch. 6), with
    the finite population correction: a table that was sampled whole has no uncertainty. A table without any sampled
    entry takes those of the others. The percentile interval knows nothing of what is larger than all that was
    sampled: see `bound_unseen`.
    """
    every = [row for stratum in strata for row in stratum.rows]
    if not every:
        return [Interval.exactly(0.0)] * columns
    dice = Random(seed)  # noqa: S311 - the same sample gives the same interval
    totals = [0.0] * columns
    replicates = [[0.0] * columns for _ in range(REPLICATES)]
    for stratum in strata:
        rows = stratum.rows or every
        means = _mean(rows, columns)
        left = sqrt(max(0.0, 1 - len(stratum.rows) / stratum.population)) if stratum.population > 0 else 0.0
        for column, mean in enumerate(means):
            totals[column] += stratum.population * mean
        for replicate in replicates:
            population = max(0.0, dice.gauss(stratum.population, stratum.standard_error))
            drawn = _mean(dice.choices(rows, k=len(rows)), columns) if left else means
            for column, mean in enumerate(means):
                replicate[column] += population * (mean + left * (drawn[column] - mean))
    return [_percentiles(total, [one[column] for one in replicates]) for column, total in enumerate(totals)]


def _mean(rows: Sequence[tuple[float, ...]], columns: int) -> list[float]:
    return [sum(row[column] for row in rows) / len(rows) for column in range(columns)]


def _percentiles(estimate: float, values: list[float]) -> Interval:
    values.sort()
    low, high = values[int(0.025 * len(values))], values[min(len(values) - 1, int(0.975 * len(values)))]
    return Interval(estimate, min(low, estimate), max(high, estimate))


def estimate_share(found: int, sampled: int) -> Interval:
    """Return the share of entries with a property; nothing sampled: anything from 0 to 1.

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927.
    """
    if not sampled:
        return Interval(0.0, 0.0, 1.0)
    share, squared = found / sampled, Z * Z / sampled
    middle = (share + squared / 2) / (1 + squared)
    half = Z * sqrt(share * (1 - share) / sampled + squared / (4 * sampled)) / (1 + squared)
    low = 0.0 if found == 0 else max(0.0, middle - half)
    high = 1.0 if found == sampled else min(1.0, middle + half)
    return Interval(share, low, high)


def estimate_mean(values: Sequence[float]) -> Interval:
    """Return the mean and its normal interval, not below 0. Raises ZeroDivisionError without a value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return Interval(mean, mean / 2, mean * 2)
    half = Z * sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    return Interval(mean, max(0.0, mean - half), mean + half)


def bound_unseen(sizes: Sequence[int], population: float, *, cap: float) -> float:
    """Return the most bytes, at 95 %, in objects that are larger than all sampled ones; `cap`: of one object.

    At 95 % at most 3/n of all objects are larger than the largest of n (the rule of three: Hanley and Lippman-Hand,
    "If Nothing Goes Wrong, Is Everything All Right?", 1983). How large they are is that of a Pareto tail, whose index
    is Hill's estimate from the largest tenth (Hill, "A Simple General Approach to Inference About the Tail of a
    Distribution", 1975).
    """
    ranked = sorted((size for size in sizes if size > 0), reverse=True)
    unseen = max(0.0, population - len(sizes))
    if not ranked or not unseen:
        return 0.0
    most = float(ranked[0])
    return min(1.0, RULE_OF_THREE / len(sizes)) * unseen * _mean_beyond(most, _tail_index(ranked), max(cap, most))


def _tail_index(ranked: Sequence[int]) -> float:
    """Return Hill's estimate; sizes in falling order."""
    tail = min(len(ranked) - 1, max(LEAST_TAIL, len(ranked) // 10))
    excess = sum(log(ranked[place] / ranked[tail]) for place in range(tail)) if tail > 0 else 0.0
    return min(STEEPEST_TAIL, tail / excess) if excess else STEEPEST_TAIL


def _mean_beyond(most: float, index: float, cap: float) -> float:
    """Return the mean of a Pareto distribution from `most` on, cut off at `cap`."""
    if cap <= most:
        return most
    if abs(index - 1) < 0.001:
        index = 1.001
    scale = index / (index - 1) * most * (1 - (most / cap) ** (index - 1))
    return scale / (1 - (most / cap) ** index)


def share_of_largest(sizes: Sequence[int], part: float = 0.01) -> float:
    """Return the share of all bytes that the largest one per cent of the objects hold (at least one object)."""
    total = sum(sizes)
    if not total:
        return 0.0
    largest = sorted(sizes, reverse=True)[: max(1, round(part * len(sizes)))]
    return sum(largest) / total
