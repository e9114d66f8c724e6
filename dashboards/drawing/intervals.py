"""How far apart the points of a panel are: `$__interval` and `$__rate_interval`, as Grafana chooses them."""

import re
from datetime import datetime

_STEPS_MS = (
    (10, 1), (15, 10), (35, 20), (75, 50), (150, 100), (350, 200), (750, 500), (1500, 1000), (3500, 2000), (7500, 5000),
    (12_500, 10_000), (17_500, 15_000), (25_000, 20_000), (45_000, 30_000), (90_000, 60_000), (210_000, 120_000),
    (450_000, 300_000), (750_000, 600_000), (1_050_000, 900_000), (1_500_000, 1_200_000), (2_700_000, 1_800_000),
    (5_400_000, 3_600_000), (9_000_000, 7_200_000), (16_200_000, 10_800_000), (32_400_000, 21_600_000),
    (86_400_000, 43_200_000), (604_800_000, 86_400_000),
)  # fmt: skip
"""Below the first number of milliseconds, the second one is chosen. Source: roundInterval of @grafana/data."""
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def milliseconds(duration: str) -> int:
    """Return the length of a duration of Grafana, such as `10s`, `>1m` or `500ms`; raises ValueError."""
    found = re.fullmatch(r">?\s*(\d+)(ms|[smhdw])", duration.strip())
    if found is None:
        raise ValueError(f"Invalid duration {duration!r}: use a number and ms, s, m, h, d or w")
    return int(found[1]) * _UNITS_MS[found[2]]


def choose_interval(start: datetime, end: datetime, points: int, least: str | None) -> int:
    """Return the milliseconds between two points, so that about `points` of them fit; never less than `least`."""
    wanted = (end - start).total_seconds() * 1000 / max(points, 1)
    rounded = next((chosen for bound, chosen in _STEPS_MS if wanted < bound), 604_800_000)
    return max(rounded, milliseconds(least) if least else 1)


def rate_interval(interval_ms: int, scrape_ms: int) -> int:
    """Return `$__rate_interval` in milliseconds: four scrapes at least. Source: Grafana, "Prometheus query editor"."""
    return max(interval_ms + scrape_ms, 4 * scrape_ms)


def as_text(interval_ms: int) -> str:
    """Return the duration as Grafana writes it into a query."""
    return f"{interval_ms // 1000}s" if interval_ms % 1000 == 0 else f"{interval_ms}ms"
