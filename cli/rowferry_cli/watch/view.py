"""Draws a snapshot so that it fits the terminal. Colours only emphasise; the text says everything."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.console import ConsoleDimensions, Group, RenderableType
from rich.table import Table

from rowferry_cli.watch.batch_lines import draw_errors, draw_failures, draw_finished, draw_queues
from rowferry_cli.watch.keys import KEYS, Page
from rowferry_cli.watch.layout import QUIET, ROOMY, STRONG, TALL, WIDE, line, share_lines
from rowferry_cli.watch.pace import SLICE, draw_chart
from rowferry_cli.watch.poller import State
from rowferry_cli.watch.progress_lines import draw_bars, draw_head, draw_sums, list_bars
from rowferry_cli.watch.snapshot import Snapshot, WatchedQueue
from rowferry_cli.watch.worker_lines import draw_hosts, draw_workers

NARROW = 80
"""The columns of a view without a size, as for scripts."""
GAP = 4
"""Columns between the two columns of a wide view."""
LONGEST_CHART, AXIS, WIDEST_SLICE = 10, 9, 6
"""Lines of the chart of the rate, columns of its numbers, and of a slice while there are few."""


def draw_view(
    state: State,
    name: str | None = None,
    *,
    database: str,
    now: datetime,
    size: ConsoleDimensions | None = None,
    footer: Sequence[str] = (),
    page: Page = "progress",
) -> Group:
    """Return the view in at most the lines of `size` (None: no limit); `footer` holds its last lines.

    `name`: the queue that is looked at; None: the first that is not done.
    """
    snapshot = state.snapshot
    head = [*draw_head(state, database, now, NARROW if size is None else size.width)]
    foot = [line(text) for text in footer]
    if snapshot is None:  # a large queue takes a moment, and what is in the way is said in the head
        return Group(*head, *([] if state.trouble else [line("Reading the queue …", QUIET)]), *foot)
    looked_at = snapshot.find_queue(name)
    room = None if size is None else size.height - len(head) - len(foot)
    if page == "help":
        body = list(_draw_help())[:room]
    elif page == "failures" and looked_at:
        lines = 1000 if room is None else room
        body = [*draw_failures(snapshot.failed_entries, looked_at.name, lines, now)][:room]
    elif size is not None and room is not None and size.width >= WIDE and size.height >= TALL:
        body = _draw_wide(snapshot, looked_at, now, size.width, room)
    else:
        body = _draw_narrow(snapshot, looked_at, now, size, room)
    return Group(*head, *body, *foot)


def _draw_help() -> list[RenderableType]:
    grid = Table.grid(expand=True, padding=(0, 2))
    grid.add_column(style=STRONG, no_wrap=True, width=1)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for key, (_, meaning) in KEYS.items():
        grid.add_row(key, meaning)
    return [line("Keys", STRONG), grid]


def _draw_narrow(
    snapshot: Snapshot,
    looked_at: WatchedQueue | None,
    now: datetime,
    size: ConsoleDimensions | None,
    room: int | None,
) -> list[RenderableType]:
    """Return the parts below each other."""
    is_roomy = size is None or size.height >= ROOMY
    blank = [line("")] if is_roomy else []
    columns = NARROW if size is None else size.width
    sums = list(draw_sums(snapshot, looked_at, now, columns=columns, is_roomy=is_roomy, has_curve=is_roomy))
    bars = list_bars(looked_at)
    errors = looked_at.reasons if looked_at else ()
    queues = snapshot.queues if len(snapshot.queues) > 1 else ()
    after_queues = blank if queues else []
    fixed = len(sums) + 3 * len(blank) + len(after_queues) + bool(snapshot.workers) + 1
    wanted = [len(queues) and len(queues) + 1, max(len(bars), 1), max(len(snapshot.workers), 1), len(errors)]
    lines = wanted if room is None else share_lines(wanted, room - fixed)
    return [
        *draw_queues(snapshot, looked_at, lines[0], columns),
        *after_queues,
        *draw_bars(bars, lines[1]),
        *blank,
        *sums,
        *blank,
        *draw_workers(snapshot, looked_at, lines[2]),
        *blank,
        *draw_errors(errors, lines[3], now),
    ]


def _draw_wide(
    snapshot: Snapshot, looked_at: WatchedQueue | None, now: datetime, width: int, room: int
) -> list[RenderableType]:
    """Return progress and hosts beside the pace and the last batches, and the errors below, over the whole width."""
    column = (width - GAP) // 2
    sums = list(draw_sums(snapshot, looked_at, now, columns=column))
    bars = list_bars(looked_at)
    errors = looked_at.reasons if looked_at else ()
    queues = snapshot.queues if len(snapshot.queues) > 1 else ()
    hosts = len({worker.host for worker in snapshot.workers})
    wanted_by_workers = hosts + 2 + len(snapshot.workers) if hosts else 0
    fixed = len(sums) + 4 + bool(queues) + 1  # blank lines, and the headings of workers and errors
    wanted = [len(queues) and len(queues) + 1, max(len(bars), 1), wanted_by_workers, len(errors)]
    lines = share_lines(wanted, room - fixed)
    height = room - lines[0] - bool(queues) - 2 - lines[3]
    left = Group(
        *draw_bars(bars, lines[1]), line(""), *sums, line(""), *draw_hosts(snapshot, looked_at, lines[2], column)
    )
    chart = min(LONGEST_CHART, max(height // 3, 3))
    right = Group(
        *_draw_pace(looked_at, column, chart),
        line(""),
        *draw_finished(looked_at.finished if looked_at else (), height - chart - 2, now),
    )
    columns = Table.grid(expand=True)
    columns.add_column(width=column)
    columns.add_column(width=GAP)
    columns.add_column(width=column)
    columns.add_row(left, "", right)
    between = [line("")] if queues else []
    below = [line(""), *draw_errors(errors, lines[3], now)]
    return [*draw_queues(snapshot, looked_at, lines[0], width), *between, columns, *below]


def _draw_pace(looked_at: WatchedQueue | None, columns: int, rows: int) -> list[RenderableType]:
    """Return a heading and the chart of the rate, with the highest rate at its top."""
    rates = looked_at.pace if looked_at else ()
    room = max(columns - AXIS, 1)
    shown = rates[-room:]
    minutes = len(shown) * SLICE / timedelta(minutes=1)
    heading = f"Entries/s, the last {minutes:,.0f} min" if minutes >= 1 else "Entries/s"
    wide = min(max(room // max(len(shown), 1), 1), WIDEST_SLICE)
    chart = draw_chart([rate for rate in shown for _ in range(wide)], room, rows)
    labels = [f"{max(shown, default=0):,.0f}", *[""] * (rows - 2), "0"][:rows]
    drawn = [line(f"{label:>{AXIS - 1}} {text}", "cyan") for label, text in zip(labels, chart, strict=True)]
    return [line(heading, STRONG), *(drawn if shown else [line("Nothing has been finished yet.", QUIET)])]
