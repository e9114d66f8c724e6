"""The values that `rowferry sweep` takes: lists of numbers, and times with a unit."""

from datetime import timedelta
from typing import Any

import click

from rowferry_cli.options import Duration

MOST_VALUES = 20
LONGEST_LATENCY = timedelta(seconds=10)


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers within bounds, separated by commas; each once, in rising order."""

    name = "N,N,…"

    def __init__(self, most: int, *, auto: int | None = None) -> None:
        """Take numbers from 1 to `most`, both included; and the word `auto`, if there is a number for it."""
        self._most = most
        self._auto = auto

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers; a usage error when they are none."""
        words = [word.strip() for word in str(value).split(",")]
        autos = {self._auto} if self._auto is not None and "auto" in words else set[int]()
        words = [word for word in words if not autos or word != "auto"]
        if not all(word.isascii() and word.isdecimal() and 1 <= int(word) <= self._most for word in words):
            self.fail(f"{value!r} is not a list of numbers from 1 to {self._most:,}, such as 16,64", param, ctx)
        numbers = sorted(autos | {int(word) for word in words})
        if len(numbers) > MOST_VALUES:
            self.fail(f"{len(numbers)} values are too many, {MOST_VALUES} the most", param, ctx)
        return tuple(numbers)


class Latency(Duration):
    """A time with its unit: 70ms, 0.5s."""

    name = "TIME"

    def __init__(self) -> None:
        """Name 70ms as the example."""
        super().__init__("70ms")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the time; a usage error when it is none, or too long."""
        time = super().convert(value, param, ctx)
        if time > LONGEST_LATENCY:
            self.fail(f"{value!r} is longer than {LONGEST_LATENCY.total_seconds():g}s", param, ctx)
        return time
