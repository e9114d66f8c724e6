"""Draws a snapshot so that it fits the terminal. Colours only emphasise; the text says everything."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from psycopg.rows import DictRow
from rich.console import ConsoleDimensions, Group, RenderableType

from rowferry_cli.watch.keys import KEYS
from rowferry_cli.watch.layout import QUIET, STRONG, line, make_grid, share_lines
from rowferry_cli.watch.lists import count_workers, draw_errors, draw_finished, draw_workers
from rowferry_cli.watch.pace import SLICE, draw_chart
from rowferry_cli.watch.poller import State
from rowferry_cli.watch.progress import draw_bars, draw_head, draw_queues, draw_sums, list_bars
from rowferry_cli.watch.snapshot import Snapshot

ENDLESS = 10_000
"""The height of a view for scripts: of a roll, not of a screen."""
ROOMY = 18
"""The height in lines from which blank lines separate the parts."""
WIDE, TALL = 110, 30
"""The columns and lines from which the view has two columns."""
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
    size: ConsoleDimensions,
    footer: Sequence[str] = (),
    shows_help: bool = False,
) -> Group:
    """Return the view in at most the lines of `size`; `footer` holds its last lines.

    `name`: the queue that is looked at; None: the first that is not done.
    """
    snapshot = state.snapshot
    head = [*draw_head(state, database, now, size.width)]
    foot = [line(text) for text in footer]
    if snapshot is None:  # a large queue takes a moment, and what is in the way is said in the head
        return Group(*head, *([] if state.trouble else [line("Reading the queue …", QUIET)]), *foot)
    looked_at = snapshot.find_queue(name)
    room = size.height - len(head) - len(foot)
    if shows_help:
        body = [line("Keys", STRONG), *(line(f"{key}  {meaning}") for key, (_, meaning) in KEYS.items())][:room]
    else:
        is_wide = size.width >= WIDE and TALL <= size.height < ENDLESS
        body = _draw_body(snapshot, looked_at, now, ConsoleDimensions(size.width, room), is_wide=is_wide)
    return Group(*head, *body, *foot)


def _draw_body(
    snapshot: Snapshot, looked_at: DictRow | None, now: datetime, room: ConsoleDimensions, *, is_wide: bool
) -> list[RenderableType]:
    """Return queues, progress, workers and errors below each other; wide, the rate and the last batches beside them."""
    column = (room.width - GAP) // 2 if is_wide else room.width
    is_roomy = room.height >= ROOMY - 2
    blank = [line("")] if is_roomy else []
    sums = list(
        draw_sums(snapshot, looked_at, now, columns=column, is_roomy=is_roomy, has_curve=is_roomy and not is_wide)
    )
    bars, errors = list_bars(snapshot, looked_at), snapshot.rows("reasons", looked_at)
    queues = len(snapshot.queues) + 1 if looked_at and len(snapshot.queues) > 1 else 0
    hosts = len({row["host"] for row in snapshot.workers}) + 2 if is_wide and snapshot.workers else 0
    wanted = [queues, max(len(bars), 1), max(hosts + count_workers(snapshot), 1), len(errors)]
    fixed = len(sums) + (3 + bool(queues)) * len(blank) + bool(snapshot.workers) + 1
    lines = share_lines(wanted, room.height - fixed)
    above = [*draw_queues(snapshot, looked_at, lines[0], room.width), *blank] if queues and looked_at else []
    middle: list[RenderableType] = [*draw_bars(bars, lines[1]), *blank, *sums, *blank]
    middle += draw_workers(snapshot, looked_at, lines[2], has_hosts=is_wide)
    if is_wide:
        height = room.height - len(above) - lines[3] - 2 + (1 - lines[0] if queues else 0)
        right = Group(*_draw_right(snapshot, looked_at, now, column, height))
        middle = [make_grid("<* < <*", [(Group(*middle), line(" " * GAP), right)], gap=0)]
    return [*above, *middle, *blank, *draw_errors(errors, lines[3], now)]


def _draw_right(
    snapshot: Snapshot, looked_at: DictRow | None, now: datetime, columns: int, height: int
) -> list[RenderableType]:
    """Return the chart of the rate, with the highest rate at its top, above the last batches."""
    rates = snapshot.list_rates(looked_at)
    rows, room = min(LONGEST_CHART, max(height // 3, 3)), max(columns - AXIS, 1)
    shown = rates[-room:]
    minutes = len(shown) * SLICE / timedelta(minutes=1)
    wide = min(max(room // max(len(shown), 1), 1), WIDEST_SLICE)
    chart = draw_chart([rate for rate in shown for _ in range(wide)], room, rows)
    labels = [f"{max(shown, default=0):,.0f}", *[""] * (rows - 2), "0"]
    drawn = [line(f"{label:>{AXIS - 1}} {text}", "cyan") for label, text in zip(labels, chart, strict=True)]
    return [
        line(f"Entries/s, the last {minutes:,.0f} min" if minutes >= 1 else "Entries/s", STRONG),
        *(drawn if shown else [line("Nothing has been finished yet.", QUIET)]),
        line(""),
        *draw_finished(snapshot.rows("finished", looked_at), height - rows - 2, now),
    ]
