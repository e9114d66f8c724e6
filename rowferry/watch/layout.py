"""How many lines each part of a frame gets. Pure."""

from collections.abc import Sequence
from typing import TypeVar

Row = TypeVar("Row")


def share_lines(wanted: Sequence[int], room: int) -> list[int]:
    """Return how many lines each part gets: all that it wants if there is room, else the longest give way first.

    A part that wants any keeps at least one, even where there is no room for it.
    """
    lines = list(wanted)
    while sum(lines) > max(room, 0) and max(lines, default=0) > 1:
        longest = len(lines) - 1 - lines[::-1].index(max(lines))
        lines[longest] -= 1
    return lines


def cut_rows(rows: Sequence[Row], lines: int) -> tuple[Sequence[Row], int]:
    """Return the rows that fit into so many lines, and how many do not: these take the last line to say so."""
    if len(rows) <= lines:
        return rows, 0
    shown = max(lines - 1, 0)
    return rows[:shown], len(rows) - shown
