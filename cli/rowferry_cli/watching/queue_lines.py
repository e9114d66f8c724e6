"""Draws one line a queue, in the order of the chain."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rowferry.formatting import format_duration, show_text
from rowferry_cli.watching.layout import BAD, GOOD, QUIET, STRONG, WARNING, line, show_share
from rowferry_cli.watching.snapshot import Snapshot, WatchedQueue

HEADINGS = ("done", "waiting", "claimed", "entries/s", "oldest due", "ERROR")
STATES = {"done": GOOD, "slowest": f"{WARNING} {STRONG}", "paused": WARNING, "in ERROR": BAD}


def draw_queues(
    snapshot: Snapshot, looked_at: WatchedQueue | None, lines: int, now: datetime
) -> Iterator[RenderableType]:
    """Yield several queues in at most so many lines, under their headings; `looked_at` is marked and always shown."""
    queues = snapshot.queues
    if len(queues) < 2 or looked_at is None:
        return
    rows = max(lines - 1, 1)
    first, last = find_window(len(queues), queues.index(looked_at), rows)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=22)
    for _ in HEADINGS:
        grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    if lines > 1:
        grid.add_row(*(Text(heading, QUIET) for heading in ("  queue", *HEADINGS, "")))
    for queue in queues[first:last]:
        grid.add_row(*_describe(queue, snapshot.find_rate(queue), is_looked_at=queue is looked_at, now=now))
    yield grid
    if rows > 1 and last - first < len(queues):
        yield line(f"… and {len(queues) - (last - first):,} more queues", QUIET)


def find_window(count: int, index: int, rows: int) -> tuple[int, int]:
    """Return the first of `count` rows to show, and the one after the last: with `index`, the middle one if possible.

    All if they fit into `rows`; else one less, for the line that counts the others.
    """
    if count <= rows:
        return 0, count
    shown = max(rows - 1, 1)
    first = min(max(index - shown // 2, 0), count - shown)
    return first, first + shown


def _describe(queue: WatchedQueue, rate: float, *, is_looked_at: bool, now: datetime) -> Iterator[Text]:
    status, counts = queue.status, queue.total
    yield Text(f"{'>' if is_looked_at else ' '} {show_text(queue.name)}", STRONG if is_looked_at else "")
    yield Text(show_share(counts) if counts.batches else "")
    yield Text(f"{counts.waiting:,}")
    yield Text(f"{status.claimed:,}" if status.max_in_hand is None else f"{status.claimed:,}/{status.max_in_hand:,}")
    yield Text(f"{rate:,.0f}")
    yield Text(format_duration(max(now - status.due_since, now - now)) if status.due_since else "")
    yield Text(f"{counts.batches_error:,}" if counts.batches_error else "", BAD)
    yield Text(status.state, STATES.get(status.state, ""))
