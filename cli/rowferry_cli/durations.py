"""Durations as options: with a unit, or in seconds where an option always took seconds."""

from datetime import timedelta
from typing import Any

import click

from rowferry.formatting import parse_duration, parse_seconds


class Duration(click.ParamType[timedelta]):
    """A number and its unit: `30m`, `12h`, `1.5d`."""

    name = "duration"

    def __init__(self, example: str = "12h") -> None:
        """Name `example` to those who write something else."""
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the duration. Fails with one sentence."""
        if isinstance(value, timedelta):
            return value
        duration = parse_duration(str(value))
        if duration is None:
            raise _invalid(value, param, ctx, f"a number and s, m, h, d or w (for example {self._example})")
        return duration


class Seconds(click.ParamType[float]):
    """A number of seconds, or a duration with its unit; at least `least`."""

    name = "seconds"

    def __init__(self, least: float) -> None:
        """Take `least` seconds or more."""
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds. Fails with one sentence."""
        seconds = parse_seconds(str(value))
        if seconds is None:
            raise _invalid(value, param, ctx, "seconds, or a number and s, m, h, d or w (for example 30 or 2m)")
        if seconds < self._least:
            self.fail(f"{str(value)!r} is less than {self._least:g} s", param, ctx)
        return seconds


def _invalid(value: Any, param: click.Parameter | None, ctx: click.Context | None, wanted: str) -> click.UsageError:
    option = f" for {param.opts[-1]}" if param else ""
    return click.UsageError(f"Invalid duration {str(value)!r}{option}: use {wanted}", ctx)
