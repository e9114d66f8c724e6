"""Draws the head of the view, the queues, the progress of each table, and what is counted in all."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from textwrap import wrap

from psycopg.rows import DictRow
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from rowferry.batch import Outcome
from rowferry.formatting import format_duration, format_rate, show_text
from rowferry_cli.status.chain import show_queue_state
from rowferry_cli.status.state import describe_state, show_state
from rowferry_cli.watch.hold_ups import list_hold_ups
from rowferry_cli.watch.layout import (
    BAD,
    GOOD,
    QUIET,
    STATE_STYLES,
    STRONG,
    STYLES,
    WARNING,
    WORST,
    cut_rows,
    line,
    make_grid,
    show_moment,
    show_share,
)
from rowferry_cli.watch.pace import draw_chart
from rowferry_cli.watch.poller import State
from rowferry_cli.watch.snapshot import Snapshot

LONGEST_SPARKLINE = 30
"""Columns: five minutes."""
MOST_LINES = 3
"""Of the sentence that says what holds it, with what to type."""
NARROW = 80
"""In fewer columns, a queue has no numbers of claims."""


def draw_head(state: State, database: str, now: datetime, columns: int) -> Iterator[RenderableType]:
    """Yield the migration with its state, why there is nothing newer, what holds it, and what it leaves out."""
    snapshot = state.snapshot
    style = STATE_STYLES.get(snapshot.state["state"], WORST) if snapshot else ""
    word = show_state(snapshot.state["state"]) if snapshot and snapshot.queues else ""
    name = Text.assemble((snapshot.migration["name"] if snapshot else "rowferry", STRONG), (f" · {database}", QUIET))
    yield make_grid("<* >", [(name, Text.assemble((word, style), (f"  {now:%H:%M:%S}", QUIET)))], gap=0)
    if state.trouble:
        since = f"No update since {snapshot.migration['moment'].astimezone():%H:%M:%S}. " if snapshot else ""
        yield line(f"{since}{state.trouble}", WORST)
    if snapshot is None:
        return
    if snapshot.state["what_to_do"]:
        words = describe_state(snapshot.state, show_moment(snapshot.state["since"], now))
        yield from (line(part, style) for part in wrap(show_text(words), columns)[:MOST_LINES])
    if left_behind := snapshot.coverage.summarise():
        yield line(left_behind, WARNING)


def draw_queues(snapshot: Snapshot, looked_at: DictRow, lines: int, columns: int) -> Iterator[RenderableType]:
    """Yield the queues in at most so many lines, under their headings; `looked_at` is marked and always shown."""
    queues = snapshot.queues
    first, last = find_window(len(queues), queues.index(looked_at), max(lines - 1, 1))
    headings = ("  queue", "done", "waiting", "claimed", "entries/s", "oldest due", "ERROR", "")
    rows = [[Text(heading, QUIET) for heading in headings]] if lines > 1 else []
    rows += [[*_describe_queue(queue, snapshot, is_looked_at=queue is looked_at)] for queue in queues[first:last]]
    if columns < NARROW:
        rows = [[*row[:3], *row[4:5], *row[6:]] for row in rows]
    yield make_grid(f"<22{' >' * (len(rows[0]) - 2)} <", rows)
    if lines > 2 and last - first < len(queues):
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


def _describe_queue(queue: DictRow, snapshot: Snapshot, *, is_looked_at: bool) -> Iterator[Text]:
    due, most, word = queue["due_since"], queue["max_claimed"], show_queue_state(queue, several=True)
    style = "" if word == "running" else WARNING if word == "slowest" else STATE_STYLES.get(queue["state"], WORST)
    yield Text(f"{'>' if is_looked_at else ' '} {show_text(queue['queue'])}", STRONG if is_looked_at else "")
    yield Text(show_share(queue))
    yield Text(f"{queue['entries_left']:,}")
    yield Text(f"{queue['claimed']:,}" if most is None else f"{queue['claimed']:,}/{most:,}")
    yield Text(format_rate(queue["rate_1m"]))
    yield Text(format_duration(max(snapshot.migration["moment"] - due, timedelta(0))) if due else "")
    yield Text(f"{queue['batches_error']:,}" if queue["batches_error"] else "", BAD)
    yield Text(word, style)


def list_bars(snapshot: Snapshot, looked_at: DictRow | None) -> list[DictRow]:
    """Return what has a bar: each table, after all together if there are several."""
    tables = snapshot.rows("tables", looked_at)
    return [looked_at | {"label": "total"}, *tables] if looked_at and len(tables) > 1 else tables


def draw_bars(bars: Sequence[DictRow], lines: int) -> Iterator[RenderableType]:
    """Yield a bar for each table in at most so many lines; in a single one, that of all together."""
    if not bars:
        yield line("The queue is empty.", QUIET)
        return
    shown, hidden = cut_rows(bars, lines) if lines > 1 else (bars[:1], 0)
    rows: list[list[RenderableType]] = []
    for number, row in enumerate(shown):
        share, ended = row["done_share"] or 0, WARNING if row["unsettled"] else GOOD
        bar = ProgressBar(1, share, complete_style="cyan" if row["waiting"] else ended, finished_style=ended)
        weight = STRONG if number == 0 and len(bars) > 1 else ""
        counts = f"{round(share * row['entries']):,} / {row['entries']:,}"
        rows.append([Text(show_text(row["label"] or "?"), weight), bar, Text(show_share(row), weight), counts])
    yield make_grid("<32 <* > >", rows, gap=1)
    if hidden:
        yield line(f"… and {hidden:,} more tables", QUIET)


def draw_sums(
    snapshot: Snapshot, looked_at: DictRow | None, now: datetime, *, columns: int, is_roomy: bool, has_curve: bool
) -> Iterator[Text]:
    """Yield batches, rate and time; entries by outcome; what is retried, and what holds it up.

    `is_roomy`: the time has a line of its own; `has_curve`: the rate is drawn where the first line has room.
    """
    if looked_at is None:
        yield line("0 of 0 batches done · 0 entries/s", STRONG)
        yield line("no entries")
        return
    times = list(_list_times(snapshot, looked_at, now))
    first = Text(" · ".join([*_list_facts(snapshot, looked_at), *([] if is_roomy else times[1:2])]), STRONG)
    room = min(columns - first.cell_len - 1, LONGEST_SPARKLINE)
    pace = snapshot.list_rates(looked_at)
    if has_curve and room > 0 and any(pace):
        first.append(f" {draw_chart(pace, room, 1)[0]}", "not bold cyan")
    yield line(first)
    if is_roomy and times:
        yield line(" · ".join(times))
    named = [(str(outcome), outcome, STYLES.get(outcome, "")) for outcome in Outcome]
    named += [("done in open batches", "in_hand", ""), ("waiting", "entries_left", "")]
    counts = [Text(f"{name} {looked_at[column]:,}", style) for name, column, style in named if looked_at[column]]
    yield line(Text(" · ").join(counts) if counts else "no entries")
    for later in snapshot.rows("delayed", looked_at):
        due = f"the next at {later['next_at'].astimezone():%H:%M:%S}" if later["next_at"] else "none is due"
        why = f" after {later['error']}" if later["error"] else ""
        yield line(f"Batches to retry: {later['batches']:,}, {due}{why}", WARNING)
    for hold_up in list(list_hold_ups(snapshot, looked_at))[: None if is_roomy else 1]:
        yield line(hold_up, WARNING)


def _list_facts(snapshot: Snapshot, looked_at: DictRow) -> Iterator[str]:
    several = len(snapshot.queues) > 1
    name = f"{looked_at['queue']}: " if several else ""
    yield f"{name}{looked_at['batches_done']:,} of {looked_at['batches']:,} batches done"
    if looked_at["batches_error"]:
        yield f"{looked_at['batches_error']:,} in ERROR"
    if not several:  # else it is in the queue's line
        yield f"{format_rate(looked_at['rate_1m'])} entries/s"
    elif snapshot.state["state"] == "done":
        yield "all queues are done"


def _list_times(snapshot: Snapshot, looked_at: DictRow, now: datetime) -> Iterator[str]:
    """Yield since when it runs, or how long it took, then the time left and when it ends, as far as they are known."""
    started, finished, moment = looked_at["started_at"], looked_at["finished_at"], snapshot.migration["moment"]
    if started is None:
        return
    if looked_at["pending_batches"] or finished is None:
        yield f"began {format_duration(max(moment - started, timedelta(0)))} ago"
    else:
        yield f"took {format_duration(finished - started)}, until {show_moment(finished, now)}"
    if snapshot.state["seconds_left"] is not None:
        held_by = snapshot.state["held_by"]
        which = f"all queues, {held_by} the last: " if held_by else ""
        yield f"{which}{format_duration(timedelta(seconds=snapshot.state['seconds_left']))} left"
        yield f"ends at {show_moment(snapshot.state['ends_at'], now)}"
