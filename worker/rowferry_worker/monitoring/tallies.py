"""Counts what every request and every object tells until the metrics take it in, which costs more than to count."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Protocol, cast

from prometheus_client import Histogram


class _Value(Protocol):
    def inc(self, amount: float, /) -> None: ...


class BulkHistogram(Histogram):
    """A histogram that takes in many observations at once."""

    def new_tally(self) -> "Tally":
        """Return what counts observations until they are taken in."""
        return Tally(self, self._upper_bounds)

    def add(self, counts: list[int], total: float) -> None:
        """Take in how many observations there were in each bucket, and their sum."""
        values = cast("list[_Value]", [self._sum, *self._buckets])  # pyright: ignore[reportUnknownMemberType]
        for value, amount in zip(values, [total, *counts], strict=True):
            if amount:
                value.inc(amount)


class Tally:
    """Observations that a histogram has not taken in. Used by one thread."""

    __slots__ = ("_bounds", "_counts", "_histogram", "_total")

    def __init__(self, histogram: BulkHistogram, bounds: list[float]) -> None:
        """Count for this histogram, which has these upper bounds."""
        self._histogram, self._bounds = histogram, bounds
        self._counts, self._total = [0] * len(bounds), 0.0

    def observe_all(self, amounts: Sequence[float]) -> None:
        """Count observations."""
        counts, bounds = self._counts, self._bounds
        for amount in amounts:
            counts[bisect_left(bounds, amount)] += 1
        self._total += sum(amounts)

    def flush(self) -> None:
        """Have the histogram take in what was counted."""
        if any(self._counts):
            self._histogram.add(self._counts, self._total)
            self._counts, self._total = [0] * len(self._bounds), 0.0
