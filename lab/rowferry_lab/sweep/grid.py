"""The settings that a sweep tries, in which order, and what the runs show together. Pure."""

import statistics
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

AUTO = 0
"""The parallelism that a worker finds by itself; it sorts before all others, as there is nothing to set."""
SEED = 1
"""Decides the images and the order of the runs, so that a sweep can be repeated."""


class Setting(NamedTuple):
    """One choice of the two settings that are compared; the smaller sorts first."""

    parallel: int
    batch_size: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{show_parallel(self.parallel)} in flight and batches of {self.batch_size:,}"


def show_parallel(parallel: int) -> str:
    """Return a parallelism as the user writes it."""
    return str(parallel) if parallel != AUTO else "auto"


class Result(NamedTuple):
    """What one run gave."""

    setting: Setting
    entries: int
    """Legacy entries that were there to migrate."""
    seconds: float
    """From the first claim to the last verdict."""
    problems: tuple[str, ...] = ()
    """What is not as it must be afterwards; empty when the migration was correct."""

    @property
    def rate(self) -> float:
        """Return entries a second."""
        return self.entries / max(self.seconds, 1e-6)


class Summary(NamedTuple):
    """The correct runs of one setting."""

    setting: Setting
    runs: int
    mean: float
    """Entries a second."""
    stdev: float
    """Sample standard deviation of the same; 0 of a single run."""


def order_runs(batch_sizes: Sequence[int], parallels: Sequence[int], repetitions: int) -> Iterator[Setting]:
    """Yield the setting of each run: every one once, in an order of chance, then all again.

    Other load on the machine then meets all settings alike, and no setting always follows the same other.
    """
    dice = Random(SEED)  # noqa: S311 - to be repeatable, not to be secret
    settings = [Setting(parallel, size) for parallel in parallels for size in batch_sizes]
    for _ in range(repetitions):
        yield from dice.sample(settings, len(settings))


def summarise(results: Sequence[Result]) -> list[Summary]:
    """Return one summary a setting, the smallest parallelism first; runs that were not correct count for nothing."""
    correct = [result for result in results if not result.problems]
    summaries: list[Summary] = []
    for setting in sorted({result.setting for result in correct}):
        rates = [result.rate for result in correct if result.setting == setting]
        stdev = statistics.stdev(rates) if len(rates) > 1 else 0.0
        summaries.append(Summary(setting, len(rates), statistics.mean(rates), stdev))
    return summaries
