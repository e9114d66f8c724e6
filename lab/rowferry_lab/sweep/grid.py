"""The settings that a sweep tries, in which order, and what the runs show together. Pure."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import NamedTuple

AUTO = 0
"""The parallelism that a worker finds by itself; it sorts before all others, as there is nothing to set."""
FEWEST_BATCHES = 4
"""How many of its largest batches a run has at least, so that one drains while another fills."""
FEWEST_ROWS, MOST_ROWS = 2_000, 100_000
BUSY_SHARE = 0.8
"""From this share of a core on, the simulated S3 server may be what holds a run up."""


class Setting(NamedTuple):
    """One choice of the two settings that are compared; the smaller sorts first."""

    parallel: int
    batch_size: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{show_parallel(self.parallel)} in flight and batches of {self.batch_size:,}"


def show_parallel(parallel: int) -> str:
    """Return a parallelism as the user writes it."""
    return f"{parallel:,}" if parallel != AUTO else "auto"


def count_needed_rows(batch_size: int) -> int:
    """Return how many rows, of which half are legacy, make FEWEST_BATCHES batches of this size."""
    return 2 * FEWEST_BATCHES * batch_size


def choose_rows(batch_sizes: Sequence[int]) -> int:
    """Return how many rows to make for each run, the same for all: beginning and end then weigh alike in each."""
    return min(max(FEWEST_ROWS, count_needed_rows(max(batch_sizes))), MOST_ROWS)


class Trial(NamedTuple):
    """One run to come; `number` is its place in the order, which like `repetition` begins with 1."""

    number: int
    repetition: int
    setting: Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Everything that a sweep is asked for."""

    batch_sizes: tuple[int, ...]
    parallels: tuple[int, ...]
    repetitions: int
    entries: int
    """Rows to make for each run, about half of them legacy."""
    latency: timedelta
    """Of each response of the simulated S3 server."""
    seed: int

    @property
    def runs(self) -> int:
        """Return how many runs there are."""
        return len(self.parallels) * len(self.batch_sizes) * self.repetitions

    @property
    def starved_sizes(self) -> list[int]:
        """Return the batch sizes for which there are too few rows: their figures are too low."""
        return [size for size in self.batch_sizes if count_needed_rows(size) > self.entries]

    def order(self) -> Iterator[Trial]:
        """Yield all runs: every setting once, in an order of chance that the seed decides, then all of them again.

        Other load on the machine then meets all settings alike, and no setting always follows the same other.
        """
        dice, number = Random(self.seed), 0  # noqa: S311 - to be repeatable, not to be secret
        settings = [Setting(parallel, size) for parallel in self.parallels for size in self.batch_sizes]
        for repetition in range(1, self.repetitions + 1):
            for setting in dice.sample(settings, len(settings)):
                number += 1
                yield Trial(number, repetition, setting)


@dataclass(frozen=True, slots=True)
class Result:
    """What one run gave."""

    trial: Trial
    entries: int
    """Legacy entries that were there to migrate."""
    duration: timedelta
    """From the first claim to the last verdict."""
    worker_cpu: timedelta
    """Of the worker's process, its start included."""
    server_cpu: timedelta
    """Of the simulated S3 server, meanwhile."""
    problems: tuple[str, ...] = ()
    """What is not as it must be afterwards; empty when the migration was correct."""

    @property
    def rate(self) -> float:
        """Return entries a second."""
        return self.entries / max(self.duration.total_seconds(), 1e-6)

    @property
    def server_share(self) -> float:
        """Return how much of one core the simulated S3 server used."""
        return self.server_cpu / max(self.duration, timedelta(microseconds=1))


class Summary(NamedTuple):
    """The correct runs of one setting."""

    setting: Setting
    runs: int
    mean: float
    """Entries a second."""
    stdev: float
    """Sample standard deviation of the same; 0 of a single run."""
    server_share: float
    """The mean share of a core that the simulated S3 server used."""


class Recommendation(NamedTuple):
    """The setting to take, and why, in sentences."""

    setting: Setting
    why: tuple[str, ...]


def summarise(results: Sequence[Result]) -> list[Summary]:
    """Return one summary a setting, the smallest parallelism first; runs that were not correct count for nothing."""
    correct = [result for result in results if not result.problems]
    return [
        _summarise_one(setting, [result for result in correct if result.trial.setting == setting])
        for setting in sorted({result.trial.setting for result in correct})
    ]


def _summarise_one(setting: Setting, results: Sequence[Result]) -> Summary:
    rates = [result.rate for result in results]
    stdev = statistics.stdev(rates) if len(rates) > 1 else 0.0
    share = statistics.mean(result.server_share for result in results)
    return Summary(setting, len(rates), statistics.mean(rates), stdev, share)


def recommend(summaries: Sequence[Summary], within: float) -> Recommendation | None:
    """Return the smallest setting whose mean is at least `1 - within` of the best mean; None where nothing was correct.

    Smallest is the fewest objects in flight, then the fewest entries in a batch: fewer requests at once are kinder to
    the provider, and a smaller batch loses less when its worker dies.
    """
    if not summaries:
        return None
    best = max(summaries, key=lambda summary: summary.mean)
    chosen = min(summary for summary in summaries if summary.mean >= (1 - within) * best.mean)
    rate, top = (f"{one.mean:,.0f} ± {one.stdev:,.0f} entries/s" for one in (chosen, best))
    why = [
        f"It is the fastest of all that were tried ({rate}), and nothing smaller comes within {within:.0%} of it."
        if chosen is best
        else f"It reaches {chosen.mean / best.mean:.0%} of the fastest ({rate} of {top}, which takes "
        f"{best.setting}), and is the smallest setting within {within:.0%} of it."
    ]
    parallels = {summary.setting.parallel for summary in summaries} - {AUTO}
    if len(parallels) > 1 and chosen.setting.parallel == max(parallels):
        why.append("It is also the largest parallelism that was tried: larger ones may be faster still.")
    if chosen.server_share >= BUSY_SHARE:
        why.append(
            f"The simulated S3 server used {chosen.server_share:.0%} of a core meanwhile: this machine may be the "
            "limit, rather than the latency."
        )
    return Recommendation(chosen.setting, tuple(why))
