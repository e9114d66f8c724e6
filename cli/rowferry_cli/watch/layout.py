"""How the parts of the view share the lines of a terminal, their columns, and their colours."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from psycopg.rows import DictRow
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rowferry.formatting import show_text

Row = TypeVar("Row")

GOOD, WARNING, BAD, QUIET, STRONG = "green", "yellow", "red", "dim", "bold"
STYLES = {"migrated": GOOD, "kept": GOOD, "missing": BAD, "conflict": BAD, "failed": BAD}
STATE_STYLES = {"done": GOOD, "running": GOOD, "paused": WARNING, "waiting": WARNING, "idle": ""}
"""The other states are bad."""
WORST = f"{BAD} {STRONG}"


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


def line(content: str | Text, style: str = "") -> Text:
    """Return one line, truncated instead of wrapped."""
    text = content if isinstance(content, Text) else Text(show_text(content), style)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def make_grid(columns: str, rows: Iterable[Sequence[RenderableType]], gap: int = 2) -> Table:
    """Return rows below one another; texts that are too long are truncated.

    `columns`: a word for each: `<` or `>` as it is aligned, and `*` where it shares what is left, or its most letters.
    """
    grid = Table.grid(expand="*" in columns, padding=(0, gap, 0, 0))
    for column in columns.split():
        size = column[1:]
        grid.add_column(
            justify="right" if column[0] == ">" else "left",
            ratio=1 if size == "*" else None,
            max_width=int(size) if size.isdigit() else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in rows:
        grid.add_row(*(Text(show_text(cell)) if isinstance(cell, str) else cell for cell in row))
    return grid


def show_share(row: DictRow) -> str:
    """Return the settled share in per cent, rounded down: 100% only when nothing waits or needs an operator."""
    share = row["done_share"]
    return "" if share is None else f"{math.floor(100 * share + 1e-9)}%"


def show_moment(moment: datetime, now: datetime) -> str:
    """Return a moment in local time, with its date unless that is today's."""
    local = moment.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == now.astimezone().date() else f"{local:%Y-%m-%d %H:%M}"
