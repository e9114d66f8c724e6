"""The one way in which durations are written: on the command line and in the environment."""

import re
from datetime import timedelta

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}

LONGEST = timedelta(days=36_500)
"""PostgreSQL and timedelta take more, but nobody means it."""


def parse_duration(text: str) -> timedelta | None:
    """Return what `90s`, `30m`, `12h`, `1.5d` or `4w` stands for (`ms` and `min` are read too); None for other text."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?) ?(ms|s|m|min|h|d|w)", text.strip(), re.ASCII)
    if found is None:
        return None
    seconds = float(found[1]) * _SECONDS[found[2]]
    return timedelta(seconds=seconds) if seconds <= LONGEST.total_seconds() else None


def parse_seconds(text: str) -> float | None:
    """Return the seconds that a bare number or a duration stands for; None for other text."""
    if re.fullmatch(r"\d{1,12}(?:\.\d{0,6})?|\.\d{1,6}", text.strip(), re.ASCII):
        return float(text)
    duration = parse_duration(text)
    return None if duration is None else duration.total_seconds()
