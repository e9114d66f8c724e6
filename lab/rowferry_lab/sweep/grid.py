"""What is tried: the settings, how often, and in which order. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random

ROUNDS = 2
"""How often a run fills all slots with its largest batches, so that one drains while another fills."""
FEWEST_ROWS, MOST_ROWS = 2_000, 100_000


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One choice of the two settings that are compared."""

    parallel: int
    batch_size: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.parallel:,} in flight and batches of {self.batch_size:,}"


def count_needed_rows(batch_size: int, slots: int) -> int:
    """Return how many rows, of which half are legacy, fill the slots ROUNDS times with batches of this size."""
    return 2 * ROUNDS * batch_size * slots


def choose_rows(batch_sizes: Sequence[int], slots: int) -> int:
    """Return how many rows to make for each run: enough for the largest batches, from FEWEST_ROWS to MOST_ROWS.

    All settings get the same, so that beginning and end weigh alike in each.
    """
    return min(max(FEWEST_ROWS, count_needed_rows(max(batch_sizes), slots)), MOST_ROWS)


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
    slots: int
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
        """Return the batch sizes for which there are too few rows: their slots stay empty, their figures too low."""
        return [size for size in self.batch_sizes if count_needed_rows(size, self.slots) > self.entries]

    def order(self) -> Iterator[Trial]:
        """Yield all runs: every setting once, in an order of chance that the seed decides, then all of them again.

        So whatever else the machine does meets all settings alike, and none always follows the same other.
        """
        dice, number = Random(self.seed), 0  # noqa: S311 - to be repeatable, not to be secret
        for repetition in range(1, self.repetitions + 1):
            settings = self.settings
            dice.shuffle(settings)
            for setting in settings:
                number += 1
                yield Trial(number, setting, repetition)
