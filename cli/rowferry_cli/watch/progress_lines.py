"""Draws the head of the view, the progress of each table, and what is counted in all."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from textwrap import wrap

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rowferry.formatting import format_duration, format_rate, show_text
from rowferry.reports.progress import Counts
from rowferry.reports.state import show_state
from rowferry_cli.watch.hold_ups import list_hold_ups
from rowferry_cli.watch.layout import (
    BAD,
    GOOD,
    QUIET,
    STATE_STYLES,
    STRONG,
    STYLES,
    WARNING,
    cut_rows,
    line,
    show_moment,
    show_share,
)
from rowferry_cli.watch.pace import draw_chart
from rowferry_cli.watch.poller import State
from rowferry_cli.watch.snapshot import Snapshot, WatchedQueue

LONGEST_SPARKLINE = 30
"""Columns: five minutes."""
MOST_LINES = 3
"""Of the sentence that says what holds it, with what to type."""


def draw_head(state: State, database: str, now: datetime, columns: int) -> Iterator[RenderableType]:
    """Yield the migration with its state, why there is nothing newer, what holds it, and what it leaves out."""
    snapshot = state.snapshot
    title = Table.grid(expand=True)
    title.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    title.add_column(justify="right", no_wrap=True)
    name = Text.assemble((snapshot.migration if snapshot else "rowferry", STRONG), (f" · {database}", QUIET))
    word = (show_state(snapshot.state), STATE_STYLES[snapshot.state]) if snapshot and snapshot.queues else ("", "")
    title.add_row(name, Text.assemble(word, (f"  {now:%H:%M:%S}", QUIET)))
    yield title
    if state.trouble:
        since = f"No update since {snapshot.moment.astimezone():%H:%M:%S}. " if snapshot else ""
        yield line(f"{since}{state.trouble}", f"{BAD} {STRONG}")
    if snapshot is not None and snapshot.stands.what_to_do and snapshot.stands.since is not None:
        words = snapshot.stands.describe(show_moment(snapshot.stands.since, now))
        for part in wrap(show_text(words), columns)[:MOST_LINES]:
            yield line(part, STATE_STYLES[snapshot.state])
    if snapshot is not None and (left_behind := snapshot.coverage.summarise()):
        yield line(left_behind, WARNING)


def list_bars(looked_at: WatchedQueue | None) -> list[tuple[str, Counts]]:
    """Return what has a bar: each table, after all together if there are several."""
    tables = list(looked_at.tables.items()) if looked_at else []
    return [("total", looked_at.total), *tables] if looked_at and len(tables) > 1 else tables


def draw_bars(bars: Sequence[tuple[str, Counts]], lines: int) -> Iterator[RenderableType]:
    """Yield a bar for each table in at most so many lines; in a single one, that of all together."""
    if not bars:
        yield line("The queue is empty.", QUIET)
        return
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=32)
    grid.add_column(ratio=1)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    shown, hidden = cut_rows(bars, lines) if lines > 1 else (bars[:1], 0)
    for number, (label, counts) in enumerate(shown):
        ended = WARNING if counts.unsettled else GOOD
        style = "cyan" if counts.waiting else ended
        bar = ProgressBar(max(counts.entries, 1), counts.settled_so_far, complete_style=style, finished_style=ended)
        weight = STRONG if number == 0 and len(bars) > 1 else ""
        share = Text(show_share(counts), weight)
        grid.add_row(Text(show_text(label), weight), bar, share, f"{counts.settled_so_far:,} / {counts.entries:,}")
    yield grid
    if hidden:
        yield line(f"… and {hidden:,} more tables", QUIET)


def draw_sums(
    snapshot: Snapshot,
    looked_at: WatchedQueue | None,
    now: datetime,
    *,
    columns: int,
    is_roomy: bool = True,
    has_curve: bool = False,
) -> Iterator[Text]:
    """Yield batches, rate and time; entries by outcome; what is retried, and what holds it up.

    `is_roomy`: the time has a line of its own; `has_curve`: the rate is drawn where the first line has room.
    """
    first = Text(_join_facts(snapshot, looked_at, now, is_roomy=is_roomy, columns=columns), STRONG)
    room = min(columns - first.cell_len - 1, LONGEST_SPARKLINE)
    if has_curve and looked_at and room > 0 and any(looked_at.pace):
        first.append(f" {draw_chart(looked_at.pace, room, 1)[0]}", "not bold cyan")
    yield line(first)
    if is_roomy and (times := _list_times(snapshot, looked_at, now)):
        yield line(" · ".join(times))
    total = looked_at.total if looked_at else Counts()
    counts = [(outcome, count) for outcome, count in total.outcomes.items() if count]
    counts += [("done in open batches", total.in_hand)] if total.in_hand else []
    counts += [("waiting", left)] if (left := total.waiting - total.in_hand) else []
    parts = [(f"{name} {count:,}", STYLES.get(name, "")) for name, count in counts]
    yield line(Text(" · ").join(Text(*part) for part in parts) if parts else "no entries")
    later = looked_at.retry_later if looked_at else None
    if later and later.batches:
        due = f"the next at {later.next_at.astimezone():%H:%M:%S}" if later.next_at else "none is due"
        why = f" after {later.error}" if later.error else ""
        yield line(f"Batches to retry: {later.batches:,}, {due}{why}", WARNING)
    for hold_up in list(list_hold_ups(snapshot, looked_at))[: None if is_roomy else 1]:
        yield line(hold_up, WARNING)


def _join_facts(
    snapshot: Snapshot, looked_at: WatchedQueue | None, now: datetime, *, is_roomy: bool, columns: int
) -> str:
    """Return the facts of the first line; where they do not fit, without the count that the errors repeat."""
    left = [] if is_roomy else _list_time_left(snapshot, now)[:1]
    facts = " · ".join([*_list_facts(snapshot, looked_at), *left])
    if len(facts) <= columns:
        return facts
    return " · ".join([*_list_facts(snapshot, looked_at, has_errors=False), *left])


def _list_facts(snapshot: Snapshot, looked_at: WatchedQueue | None, *, has_errors: bool = True) -> list[str]:
    total = looked_at.total if looked_at else Counts()
    several = len(snapshot.queues) > 1
    facts = [f"{looked_at.name}: "] if looked_at and several else [""]
    facts[0] += f"{total.batches_done:,} of {total.batches:,} batches done"
    facts += [f"{total.batches_error:,} in ERROR"] if total.batches_error and has_errors else []
    if not several:  # else it is in the queue's line
        facts += [f"{format_rate(looked_at.status.rate if looked_at else 0.0)} entries/s"]
    elif snapshot.is_done:
        facts += ["all queues are done"]
    return facts


def _list_times(snapshot: Snapshot, looked_at: WatchedQueue | None, now: datetime) -> list[str]:
    """Return since when it runs, or how long it took, then the time left and when it ends, as far as they are known."""
    if looked_at is None or looked_at.started_at is None:
        return []
    if not looked_at.status.pending_batches and looked_at.finished_at:
        took = format_duration(looked_at.finished_at - looked_at.started_at)
        return [f"took {took}, until {show_moment(looked_at.finished_at, now)}", *_list_time_left(snapshot, now)]
    began = f"began {format_duration(max(snapshot.moment - looked_at.started_at, timedelta(0)))} ago"
    return [began, *_list_time_left(snapshot, now)]


def _list_time_left(snapshot: Snapshot, now: datetime) -> list[str]:
    """Return the time left and when it ends; nothing while that is unknown, or nobody works on it."""
    left = snapshot.time_left
    if left is None:
        return []
    which = f"all queues, {snapshot.stands.held_by} the last: " if snapshot.stands.held_by else ""
    return [f"{which}{format_duration(left)} left", f"ends at {show_moment(snapshot.moment + left, now)}"]
