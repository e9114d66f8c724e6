"""How the parts of the view share the lines of a terminal, and its colours."""

from collections.abc import Sequence
from typing import TypeVar

from rich.text import Text

from rowferry.formatting import show_text
from rowferry.reports.progress import Counts

Row = TypeVar("Row")


def share_lines(wanted: Sequence[int], room: int) -> list[int]:
    """Return how many lines each part gets: all it wants if there is room, else the longest parts shrink first.

    A part that wants any lines gets at least one.
    """
    lines = list(wanted)
    while sum(lines) > max(room, 0) and max(lines, default=0) > 1:
        longest = len(lines) - 1 - lines[::-1].index(max(lines))
        lines[longest] -= 1
    return lines


def cut_rows(rows: Sequence[Row], lines: int) -> tuple[Sequence[Row], int]:
    """Return the rows that fit into `lines`, and how many do not; their number then takes the last line."""
    if len(rows) <= lines:
        return rows, 0
    shown = max(lines - 1, 0)
    return rows[:shown], len(rows) - shown


GOOD, WARNING, BAD, QUIET, STRONG = "green", "yellow", "red", "dim", "bold"

ROOMY = 18
"""The height in lines from which blank lines separate the parts."""

STYLES = {"migrated": GOOD, "kept": GOOD, "missing": BAD, "conflict": BAD, "failed": BAD}


def line(content: str | Text, style: str = "") -> Text:
    """Return one line, truncated instead of wrapped."""
    text = content if isinstance(content, Text) else Text(show_text(content), style)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def show_share(counts: Counts) -> str:
    """Return the finished share in per cent, rounded down: 100% only when nothing waits."""
    return f"{100 * counts.finished // counts.entries}%" if counts.entries else "100%"
