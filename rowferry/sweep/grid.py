"""What is tried: the settings, how often, and in which order. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One choice of the two settings that are compared."""

    parallel: int
    batch_size: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.parallel:,} in flight and batches of {self.batch_size:,}"


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
