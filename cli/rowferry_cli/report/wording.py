"""Writes numbers, times and shares as the page shows them; None as an en dash. Pure."""

import math
from datetime import UTC, datetime, timedelta

from rowferry.formatting import format_duration


def write_share(share: float | None) -> str:
    """Return a share in percent; never 100 % where something is left, never 0 % where something is there."""
    if share is None:
        return "–"
    if share in {0, 1}:
        return f"{100 * share:.0f} %"
    tenths = math.floor(1000 * share + 1e-9)
    return f"{tenths / 10} %" if tenths else "< 0.1 %"


def write_moment(moment: datetime) -> str:
    """Return a time with its date, to the second, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def write_step(step: timedelta) -> str:
    """Return a round length in the largest unit that divides it: 30 s, 5 min, 2 h, 1 d."""
    for name, unit in (("d", 86_400), ("h", 3600), ("min", 60)):
        if not step.total_seconds() % unit:
            return f"{step.total_seconds() / unit:.0f} {name}"
    return f"{step.total_seconds():.0f} s"


def write_rate(rate: float) -> str:
    """Return entries per second with as many digits as mean something: 1,234; 12.3; 0.04."""
    if rate >= 100 or rate == 0:
        return f"{rate:,.0f}"
    return f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"


def write_bytes(number: int) -> str:
    """Return what was copied in the largest binary unit that it fills: 512 B, 1.5 GiB.

    An en dash for 0: servers that copy by themselves do not tell.
    """
    if number < 1024:
        return f"{number} B" if number else "–"
    power = min((number.bit_length() - 1) // 10, 6)
    return f"{number / 1024**power:,.1f} {'KMGTPE'[power - 1]}iB"


def write_duration(duration: timedelta | None) -> str:
    """Return a duration in its two largest units."""
    return "–" if duration is None else format_duration(duration)
