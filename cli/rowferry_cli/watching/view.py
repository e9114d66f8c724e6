"""Draws a snapshot so that it fits the terminal. Colours only emphasise; the text says everything."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rowferry.formatting import format_duration, show_text
from rowferry.reports.progress import Counts
from rowferry_cli.watching.layout import (
    BAD,
    GOOD,
    QUIET,
    ROOMY,
    STRONG,
    STYLES,
    WARNING,
    cut_rows,
    line,
    share_lines,
    show_share,
)
from rowferry_cli.watching.poller import State
from rowferry_cli.watching.queue_lines import draw_queues
from rowferry_cli.watching.snapshot import NONE_LATER, Reason, Snapshot, WatchedQueue, Worker


def draw_view(
    state: State,
    name: str | None = None,
    *,
    database: str,
    now: datetime,
    height: int | None = None,
    footer: Sequence[str] = (),
) -> Group:
    """Return the view in at most `height` lines (None: no limit); `footer` holds its last lines.

    `name`: the queue that is looked at; None: the first that is not done.
    """
    snapshot = state.snapshot
    head = [*_draw_head(state, database, now)]
    foot = [line(text) for text in footer]
    if snapshot is None:
        return Group(*head, *foot)
    looked_at = snapshot.find_queue(name)
    blank = [line("")] if height is None or height >= ROOMY else []
    sums = list(_draw_sums(snapshot, looked_at))
    tables = list(looked_at.tables.items()) if looked_at else []
    errors = looked_at.reasons if looked_at else ()
    queues = snapshot.queues if len(snapshot.queues) > 1 else ()
    after_queues = blank if queues else []
    fixed = len(head) + len(sums) + len(foot) + 3 * len(blank) + len(after_queues) + bool(snapshot.workers) + 1
    wanted = [len(queues) and len(queues) + 1, max(len(tables), 1), max(len(snapshot.workers), 1), len(errors)]
    lines = wanted if height is None else share_lines(wanted, height - fixed)
    return Group(
        *head,
        *draw_queues(queues, looked_at, lines[0], now),
        *after_queues,
        *_draw_tables(tables, lines[1]),
        *blank,
        *sums,
        *blank,
        *_draw_workers(snapshot.workers, lines[2]),
        *blank,
        *_draw_errors(errors, lines[3], now),
        *foot,
    )


def _draw_head(state: State, database: str, now: datetime) -> Iterator[RenderableType]:
    snapshot = state.snapshot
    title = Table.grid(expand=True)
    title.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    title.add_column(justify="right", no_wrap=True)
    name = Text.assemble((snapshot.migration if snapshot else "rowferry", STRONG), (f" · {database}", QUIET))
    title.add_row(name, Text(f"{now:%H:%M:%S}", QUIET))
    yield title
    if state.trouble:
        since = f"No update since {snapshot.moment.astimezone():%H:%M:%S}. " if snapshot else ""
        yield line(f"{since}{state.trouble}", f"{BAD} {STRONG}")
    if snapshot is not None and snapshot.paused_at is not None:
        reason = snapshot.pause_reason or "workers claim no new batches."
        yield line(f"Paused since {show_moment(snapshot.paused_at, now)}: {reason}", f"{WARNING} {STRONG}")


def _draw_tables(tables: Sequence[tuple[str, Counts]], lines: int) -> Iterator[RenderableType]:
    if not tables:
        yield line("The queue is empty.", QUIET)
        return
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=32)
    grid.add_column(ratio=1)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    shown, hidden = cut_rows(tables, lines)
    for label, counts in shown:
        style = GOOD if not counts.waiting else "cyan"
        bar = ProgressBar(max(counts.entries, 1), counts.finished, complete_style=style, finished_style=GOOD)
        grid.add_row(Text(show_text(label)), bar, show_share(counts), f"{counts.finished:,} / {counts.entries:,}")
    yield from [grid] if shown else []
    if hidden:
        yield line(f"… and {hidden:,} more tables", QUIET)


def _draw_sums(snapshot: Snapshot, looked_at: WatchedQueue | None) -> Iterator[Text]:
    total, left = looked_at.total if looked_at else Counts(), snapshot.time_left
    several = len(snapshot.queues) > 1
    facts = [f"{looked_at.name}: "] if looked_at and several else [""]
    facts[0] += f"{total.batches_done:,} of {total.batches:,} batches done"
    facts += [f"{total.batches_error:,} in ERROR"] if total.batches_error else []
    if not several:  # else it is in the queue's line
        facts += [f"{looked_at.status.rate if looked_at else 0:,.0f} entries/s"]
    if left is not None:
        facts += [f"all queues: {format_duration(left)} left" if several else f"{format_duration(left)} left"]
    elif several and snapshot.is_done:
        facts += ["all queues are done"]
    yield line(" · ".join(facts), STRONG)
    counts = [(outcome, count) for outcome, count in total.outcomes.items() if count]
    counts += [("waiting", total.waiting)] if total.waiting else []
    parts = [(f"{name} {count:,}", STYLES.get(name, "")) for name, count in counts]
    yield line(Text(" · ").join(Text(*part) for part in parts) if parts else "no entries")
    later = looked_at.retry_later if looked_at else NONE_LATER
    if later.batches:
        due = f"the next at {later.next_at.astimezone():%H:%M:%S}" if later.next_at else "none is due"
        why = f" after {later.error}" if later.error else ""
        yield line(f"Batches to retry: {later.batches:,}, {due}{why}", WARNING)


def _draw_workers(workers: Sequence[Worker], lines: int) -> Iterator[RenderableType]:
    claimed = sum(len(worker.batches) for worker in workers)
    if not workers:
        yield line("No worker is running.", WARNING)
        return
    yield line(f"Workers: {len(workers):,}, claimed batches: {claimed:,}", STRONG)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    rows = list(_list_workers(workers) if len(workers) <= lines else _list_hosts(workers))
    shown, hidden = cut_rows(rows, lines)
    for host, text in shown:
        grid.add_row(Text(show_text(host)), text)
    yield from [grid] if shown else []
    if hidden:
        yield line(f"… and {hidden:,} more hosts", QUIET)


def _list_workers(workers: Sequence[Worker]) -> Iterator[tuple[str, str]]:
    """Yield a line per worker; the host stands only in its first line."""
    last_host = ""
    for worker in workers:
        batches = ", ".join(f"batch {one.batch_id} for {format_duration(one.claimed_for)}" for one in worker.batches)
        yield worker.host if worker.host != last_host else "", f"{worker.pid}  {batches or 'idle'}"
        last_host = worker.host


def _list_hosts(workers: Sequence[Worker]) -> Iterator[tuple[str, str]]:
    """Yield a line per host, if there is no room for a line per worker."""
    for host, group in groupby(workers, key=lambda worker: worker.host):
        here = list(group)
        batches = [batch for worker in here for batch in worker.batches]
        oldest = max(batches, key=lambda batch: batch.claimed_for, default=None)
        since = f", the oldest is {oldest.batch_id} for {format_duration(oldest.claimed_for)}" if oldest else ""
        yield host, f"workers: {len(here):,}, batches: {len(batches):,}{since}"


def _draw_errors(reasons: Sequence[Reason], lines: int, now: datetime) -> Iterator[RenderableType]:
    if not reasons:
        yield line("No batch is in ERROR.", QUIET)
        return
    yield line("Latest errors", STRONG)
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=3, no_wrap=True, overflow="ellipsis")
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=2, no_wrap=True, overflow="ellipsis")
    shown, hidden = cut_rows(reasons, lines)
    for found in shown:
        when = show_moment(found.last_failed_at, now)
        reason, example = Text(show_text(found.reason)), Text(show_text(found.example_key), QUIET)
        grid.add_row(f"{found.entries:,}", Text(found.outcome, BAD), reason, when, example)
    yield from [grid] if shown else []
    if hidden:
        yield line(f"… and {hidden:,} more reasons: rowferry errors", QUIET)


def show_moment(moment: datetime, now: datetime) -> str:
    """Return a moment in local time, with its date unless that is today's."""
    local = moment.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == now.astimezone().date() else f"{local:%Y-%m-%d %H:%M}"
