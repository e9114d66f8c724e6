"""Draws the rate of a queue, in slices of ten seconds."""

from collections.abc import Sequence
from datetime import timedelta

SLICE = timedelta(seconds=10)
"""Of `watch_pace`."""
BLOCKS = " ▁▂▃▄▅▆▇█"
"""A cell that is filled by so many eighths."""


def draw_chart(rates: Sequence[float], columns: int, rows: int) -> list[str]:
    """Return a chart of the last `columns` rates, its top line first; the highest fills all `rows`.

    A rate of 0 is drawn, too, as the lowest block of the bottom line; any other rate is higher.
    """
    shown = rates[-columns:] if columns > 0 else ()
    most = max(shown, default=0)
    levels = [1 + round(rate / most * (8 * rows - 1)) if most else 1 for rate in shown]
    levels = [max(level, 2) if rate else level for level, rate in zip(levels, shown, strict=True)]
    return ["".join(BLOCKS[min(max(level - 8 * row, 0), 8)] for level in levels) for row in reversed(range(rows))]
