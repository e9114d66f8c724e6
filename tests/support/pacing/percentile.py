"""The product's pace with a low percentile of latency in the place of the mean: what ADR 19 compares."""

import math

from rowferry_worker.pacing.in_flight import InFlightLimit
from rowferry_worker.pacing.latency import LEAST, Kind, LatencyWindow, Mean
from support.pacing.fleet import SimulatedPacer
from support.pacing.simulator import Simulation

SHARE = 0.25


class PercentileWindow(LatencyWindow):
    """The samples of a window by kind; it summarizes each by its percentile."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        super().__init__()
        self._samples: dict[Kind, list[float]] = {}

    def note(self, kind: Kind, seconds: float) -> None:
        super().note(kind, seconds)
        self._samples.setdefault(kind, []).append(seconds)

    def summarize(self) -> dict[Kind, Mean]:
        return {kind: find_percentile(sorted(seen)) for kind, seen in self._samples.items() if len(seen) >= LEAST}


def find_percentile(ordered: list[float]) -> Mean:
    """Return the percentile and its error: half of what lies between the samples one binomial error around it."""
    last, error = len(ordered) - 1, math.sqrt(len(ordered) * SHARE * (1 - SHARE))
    low, seconds, high = (ordered[min(last, max(0, round(SHARE * last + e)))] for e in (-error, 0.0, error))
    seconds = max(1e-6, seconds)
    return Mean(seconds, (high - low) / 2 / seconds, sum(ordered))


class PercentileLimit(InFlightLimit):
    """Climbs as the product does, by the percentile of each round."""

    def __post_init__(self) -> None:
        InFlightLimit.__post_init__(self)
        self._window = PercentileWindow()

    def _begin_round(self, now: float) -> None:
        InFlightLimit._begin_round(self, now)
        self._window = PercentileWindow()


def percentile(simulation: Simulation) -> SimulatedPacer:
    pace = SimulatedPacer(1, 4096, lambda: simulation.now)
    pace.limit = PercentileLimit(1, 4096)
    return pace
