"""How long requests of one kind take, compared with how long such requests took before."""

import math
from typing import NamedTuple

LEAST = 4
"""Samples of a kind below which a window says nothing of it."""
OUTLIER = 8.0
"""A sample counts as so many times the mean at the most."""

Kind = tuple[str, int]
"""The server and operation, and the number of bits of the size in bytes."""


class Mean(NamedTuple):
    """What a window says of a kind."""

    seconds: float
    """The mean latency, which is what Little's law is about."""
    error: float
    """Its standard error, as a share of it."""
    total_seconds: float
    """The time that all requests of the kind took together."""


class Change(NamedTuple):
    """How latency has changed from one window to another."""

    log_ratio: float
    """The logarithm of the ratio, each kind weighted by the time that its requests take."""
    error: float
    """Its standard error."""


class LatencyWindow:
    """The latencies of successes, by kind, since the window began: three sums a kind, and no samples."""

    __slots__ = ("_sums", "count")

    def __init__(self) -> None:
        """Begin empty."""
        self._sums: dict[Kind, list[float]] = {}
        self.count = 0

    def note(self, kind: Kind, seconds: float) -> None:
        """Take the latency of a success in."""
        self.count += 1
        sums = self._sums.get(kind)
        if sums is None:
            self._sums[kind] = [1.0, seconds, seconds * seconds]
            return
        if sums[0] > LEAST and seconds * sums[0] > OUTLIER * sums[1]:
            seconds = OUTLIER * sums[1] / sums[0]
        sums[0] += 1.0
        sums[1] += seconds
        sums[2] += seconds * seconds

    def summarize(self) -> dict[Kind, Mean]:
        """Return the mean of each kind that has samples enough."""
        return {kind: _find_mean(*sums) for kind, sums in self._sums.items() if sums[0] >= LEAST}

    def mean_seconds(self) -> float:
        """Return the mean of all samples."""
        return sum(sums[1] for sums in self._sums.values()) / max(1, self.count)


def _find_mean(count: float, total: float, squares: float) -> Mean:
    mean = max(1e-6, total / count)
    variance = max(0.0, squares / count - mean * mean)
    return Mean(mean, math.sqrt(variance / count) / mean, total)


def compare(before: dict[Kind, Mean], after: dict[Kind, Mean]) -> Change | None:
    """Return how latency has changed; None where the two have no kind in common."""
    total = log_ratio = variance = 0.0
    for kind, now in after.items():
        then = before.get(kind)
        if then is not None:
            weight = now.total_seconds
            total += weight
            log_ratio += weight * math.log(now.seconds / then.seconds)
            variance += weight * weight * (now.error**2 + then.error**2)
    return Change(log_ratio / total, math.sqrt(variance) / total) if total else None
