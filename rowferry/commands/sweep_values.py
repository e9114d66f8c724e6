"""The values that `rowferry sweep` takes: lists of numbers, and times with a unit."""

import re
from datetime import timedelta
from typing import Any

import click

MOST_VALUES = 20
LONGEST_LATENCY = timedelta(seconds=10)


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers within bounds, separated by commas; each once, in rising order."""

    name = "N,N,…"

    def __init__(self, most: int) -> None:
        """Take numbers from 1 to `most`, both included."""
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers; a usage error when they are none."""
        words = [word.strip() for word in str(value).split(",")]
        if not all(word.isascii() and word.isdecimal() and 1 <= int(word) <= self._most for word in words):
            self.fail(f"{value!r} is not a list of numbers from 1 to {self._most:,}, such as 16,64", param, ctx)
        numbers = sorted({int(word) for word in words})
        if len(numbers) > MOST_VALUES:
            self.fail(f"{len(numbers)} values are too many, {MOST_VALUES} the most", param, ctx)
        return tuple(numbers)


class Latency(click.ParamType[timedelta]):
    """A time with its unit: 70ms, 0.5s."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the time; a usage error when it is none, or too long."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s)", str(value).strip())
        if not found:
            self.fail(f"{value!r} is no time such as 70ms or 0.5s", param, ctx)
        time = timedelta(seconds=float(found[1]) / (1000 if found[2] == "ms" else 1))
        if time > LONGEST_LATENCY:
            self.fail(f"{value!r} is longer than {LONGEST_LATENCY.total_seconds():g}s", param, ctx)
        return time
