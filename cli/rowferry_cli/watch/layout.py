"""How the parts of the view share the lines of a terminal, and its colours."""

from collections.abc import Sequence
from datetime import datetime
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
WIDE, TALL = 110, 30
"""The columns and lines from which the view has two columns."""

STYLES = {"migrated": GOOD, "kept": GOOD, "missing": BAD, "conflict": BAD, "failed": BAD}
STATE_STYLES = {
    "done": GOOD,
    "running": GOOD,
    "need_somebody": f"{BAD} {STRONG}",
    "stalled": f"{BAD} {STRONG}",
    "no_workers": f"{BAD} {STRONG}",
    "paused": WARNING,
    "waiting": WARNING,
}


def line(content: str | Text, style: str = "") -> Text:
    """Return one line, truncated instead of wrapped."""
    text = content if isinstance(content, Text) else Text(show_text(content), style)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def show_share(counts: Counts) -> str:
    """Return the settled share in per cent, rounded down: 100% only when nothing waits or needs an operator."""
    return f"{100 * counts.settled_so_far // counts.entries}%" if counts.entries else "100%"


def show_moment(moment: datetime, now: datetime) -> str:
    """Return a moment in local time, with its date unless that is today's."""
    local = moment.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == now.astimezone().date() else f"{local:%Y-%m-%d %H:%M}"
