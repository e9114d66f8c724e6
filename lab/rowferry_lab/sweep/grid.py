"""The settings that a sweep tries, in which order, and what the runs show together. Pure."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random

AUTO = 0
"""The parallelism that a worker finds by itself; it sorts before all others, as there is nothing to set."""
FEWEST_BATCHES = 4
"""How many of its largest batches a run has at least, so that one drains while another fills."""
FEWEST_ROWS, MOST_ROWS = 2_000, 100_000
BUSY_SHARE = 0.8
"""From this share of a core on, the simulated S3 server may be what holds a run up."""


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One choice of the two settings that are compared."""

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
    """Return how many rows to make for each run: enough for the largest batches, from FEWEST_ROWS to MOST_ROWS.

    All settings get the same, so that beginning and end weigh alike in each.
    """
    return min(max(FEWEST_ROWS, count_needed_rows(max(batch_sizes))), MOST_ROWS)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run to come."""

    number: int
    """Its place in the order, from 1."""
    setting: Setting
    repetition: int
    """From 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Everything that a sweep is asked for."""

    batch_sizes: tuple[int, ...]
    parallels: tuple[int, ...]
    repetitions: int
    entries: int
    """Rows to make for each run, about half of them legacy."""
    latency: timedelta
    """Of each answer of the simulated S3 server."""
    seed: int

    @property
    def settings(self) -> list[Setting]:
        """Return every combination, the smallest parallelism first."""
        return sorted(Setting(parallel, size) for parallel in self.parallels for size in self.batch_sizes)

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
        for repetition in range(1, self.repetitions + 1):
            settings = self.settings
            dice.shuffle(settings)
            for setting in settings:
                number += 1
                yield Trial(number, setting, repetition)


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


@dataclass(frozen=True, slots=True)
class Summary:
    """The runs of one setting."""

    setting: Setting
    runs: int
    mean: float
    """Entries a second."""
    stdev: float
    """Sample standard deviation of the same; 0 of a single run."""
    server_share: float
    """The mean share of a core that the simulated S3 server used."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The setting to take, and why."""

    setting: Setting
    why: tuple[str, ...]
    """Sentences."""


def summarise(results: Sequence[Result]) -> list[Summary]:
    """Return one summary a setting, the smallest parallelism first; runs that were not correct count for nothing."""
    grouped: dict[Setting, list[Result]] = {}
    for result in results:
        if not result.problems:
            grouped.setdefault(result.trial.setting, []).append(result)
    return [_summarise_one(setting, grouped[setting]) for setting in sorted(grouped)]


def _summarise_one(setting: Setting, results: Sequence[Result]) -> Summary:
    rates = [result.rate for result in results]
    return Summary(
        setting,
        len(results),
        statistics.mean(rates),
        statistics.stdev(rates) if len(rates) > 1 else 0.0,
        statistics.mean(result.server_share for result in results),
    )


def recommend(summaries: Sequence[Summary], within: float) -> Recommendation | None:
    """Return the smallest setting whose mean is at least `1 - within` of the best mean; None where nothing was correct.

    Smallest is the fewest objects in flight, then the fewest entries in a batch: fewer requests at once are kinder to
    the provider, and a smaller batch loses less when its worker dies.
    """
    if not summaries:
        return None
    best = max(summaries, key=lambda summary: summary.mean)
    chosen = min(
        (summary for summary in summaries if summary.mean >= (1 - within) * best.mean), key=lambda one: one.setting
    )
    return Recommendation(chosen.setting, tuple(_explain(chosen, best, summaries, within)))


def _explain(chosen: Summary, best: Summary, summaries: Sequence[Summary], within: float) -> list[str]:
    rate = f"{chosen.mean:,.0f} ± {chosen.stdev:,.0f} entries/s"
    if chosen is best:
        why = [
            f"It is the fastest of all that were tried ({rate}), and nothing smaller comes within {within:.0%} of it."
        ]
    else:
        why = [
            f"It reaches {chosen.mean / best.mean:.0%} of the fastest ({rate} of {best.mean:,.0f} ± {best.stdev:,.0f}, "
            f"which takes {best.setting}), and is the smallest setting within {within:.0%} of it."
        ]
    parallels = {summary.setting.parallel for summary in summaries} - {AUTO}
    if len(parallels) > 1 and chosen.setting.parallel == max(parallels):
        why.append("It is also the largest parallelism that was tried: larger ones may be faster still.")
    if chosen.server_share >= BUSY_SHARE:
        why.append(
            f"The simulated S3 server used {chosen.server_share:.0%} of a core meanwhile: this machine may be the "
            "limit, rather than the latency."
        )
    return why
