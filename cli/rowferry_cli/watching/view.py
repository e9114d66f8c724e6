"""Station 3 of 3: draw a picture as a frame that fits the terminal; colours help, but say nothing alone."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rowferry.formatting import show_text
from rowferry.reports.progress import Counts, show_time
from rowferry_cli.watching.poller import Seen
from rowferry_cli.watching.snapshot import Picture, Reason, Worker

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


KEYS = "p pause · r resume · e requeue errors · q quit"
GOOD, WARNING, BAD, QUIET, STRONG = "green", "yellow", "red", "dim", "bold"

ROOMY = 18
"""Lines of a terminal from which on parts are set apart by blank lines."""

STYLES = {"migrated": GOOD, "kept": GOOD, "missing": BAD, "conflict": BAD, "failed": BAD}


def draw_frame(
    seen: Seen, *, place: str, moment: datetime, height: int | None = None, footer: Sequence[str] = ()
) -> Group:
    """Return a frame of at most `height` lines (None: as many as it takes).

    `place` names the database, `moment` is now, `footer` holds the last lines.
    """
    picture = seen.picture
    head = [*_draw_head(seen, place, moment)]
    foot = [line(words) for words in footer]
    if picture is None:
        return Group(*head, *foot)
    blank = [line("")] if height is None or height >= ROOMY else []
    sums = list(_draw_sums(picture))
    tables, errors = list(picture.tables.items()), list(picture.reasons)
    fixed = len(head) + len(sums) + len(foot) + 3 * len(blank) + bool(picture.workers) + 1
    wanted = [max(len(tables), 1), max(len(picture.workers), 1), len(errors)]
    lines = wanted if height is None else share_lines(wanted, height - fixed)
    return Group(
        *head,
        *_draw_tables(tables, lines[0]),
        *blank,
        *sums,
        *blank,
        *_draw_workers(picture.workers, lines[1]),
        *blank,
        *_draw_errors(errors, lines[2], moment),
        *foot,
    )


def line(words: str | Text, style: str = "") -> Text:
    """Return one line that is cut off rather than wrapped."""
    text = words if isinstance(words, Text) else Text(show_text(words), style)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _draw_head(seen: Seen, place: str, moment: datetime) -> Iterator[RenderableType]:
    picture = seen.picture
    title = Table.grid(expand=True)
    title.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    title.add_column(justify="right", no_wrap=True)
    name = Text.assemble((picture.migration if picture else "rowferry", STRONG), (f" · {place}", QUIET))
    title.add_row(name, Text(f"{moment:%H:%M:%S}", QUIET))
    yield title
    if seen.trouble:
        since = f"No news since {picture.moment.astimezone():%H:%M:%S}. " if picture else ""
        yield line(f"{since}{seen.trouble}", f"{BAD} {STRONG}")
    if picture is not None and picture.paused_at is not None:
        reason = picture.pause_reason or "nothing more is claimed."
        yield line(f"Paused since {show_moment(picture.paused_at, moment)}: {reason}", f"{WARNING} {STRONG}")


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


def _draw_sums(picture: Picture) -> Iterator[Text]:
    total, left = picture.total, picture.time_left
    words = [f"{total.batches_done:,} of {total.batches:,} batches done"]
    words += [f"{total.batches_error:,} in ERROR"] if total.batches_error else []
    words += [f"{picture.rate:,.0f} entries/s"]
    words += [f"{show_time(left)} left"] if left is not None and total.waiting else []
    yield line(" · ".join(words), STRONG)
    counts = [(outcome, count) for outcome, count in total.outcomes.items() if count]
    counts += [("waiting", total.waiting)] if total.waiting else []
    parts = [(f"{name} {count:,}", STYLES.get(name, "")) for name, count in counts]
    yield line(Text(" · ").join(Text(*part) for part in parts) if parts else "no entries")
    resting = picture.resting
    if resting.batches:
        due = f"the next is due at {resting.next_at.astimezone():%H:%M:%S}" if resting.next_at else "none is due"
        why = f" after {resting.error}" if resting.error else ""
        yield line(f"Resting batches: {resting.batches:,}, {due}{why}", WARNING)


def _draw_workers(workers: Sequence[Worker], lines: int) -> Iterator[RenderableType]:
    held = sum(len(worker.hands) for worker in workers)
    if not workers:
        yield line("No worker lives.", WARNING)
        return
    yield line(f"Workers: {len(workers):,}, batches in hand: {held:,}", STRONG)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    rows = list(_list_workers(workers) if len(workers) <= lines else _list_hosts(workers))
    shown, hidden = cut_rows(rows, lines)
    for host, words in shown:
        grid.add_row(Text(show_text(host)), words)
    yield from [grid] if shown else []
    if hidden:
        yield line(f"… and {hidden:,} more hosts", QUIET)


def _list_workers(workers: Sequence[Worker]) -> Iterator[tuple[str, str]]:
    """Yield a line a worker; its host stands in the first line of the host."""
    last_host = ""
    for worker in workers:
        hands = ", ".join(f"batch {hand.batch_id} for {show_time(hand.held_for)}" for hand in worker.hands)
        yield worker.host if worker.host != last_host else "", f"{worker.pid}  {hands or 'idle'}"
        last_host = worker.host


def _list_hosts(workers: Sequence[Worker]) -> Iterator[tuple[str, str]]:
    """Yield a line a host, where there is no room for a line a worker."""
    for host, group in groupby(workers, key=lambda worker: worker.host):
        those = list(group)
        hands = [hand for worker in those for hand in worker.hands]
        oldest = max(hands, key=lambda hand: hand.held_for, default=None)
        since = f", the oldest is {oldest.batch_id} for {show_time(oldest.held_for)}" if oldest else ""
        yield host, f"workers: {len(those):,}, batches: {len(hands):,}{since}"


def _draw_errors(reasons: Sequence[Reason], lines: int, moment: datetime) -> Iterator[RenderableType]:
    if not reasons:
        yield line("No batch is in ERROR.", QUIET)
        return
    yield line("Errors, the last first", STRONG)
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=3, no_wrap=True, overflow="ellipsis")
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=2, no_wrap=True, overflow="ellipsis")
    shown, hidden = cut_rows(reasons, lines)
    for found in shown:
        when = show_moment(found.last_failed_at, moment)
        reason, example = Text(show_text(found.reason)), Text(show_text(found.example_key), QUIET)
        grid.add_row(f"{found.entries:,}", Text(found.outcome, BAD), reason, when, example)
    yield from [grid] if shown else []
    if hidden:
        yield line(f"… and {hidden:,} more reasons: rowferry errors", QUIET)


def show_share(counts: Counts) -> str:
    """Return the finished part in whole per cent, rounded down: 100% is said only when nothing waits."""
    return f"{100 * counts.finished // counts.entries}%" if counts.entries else "100%"


def show_moment(moment: datetime, now: datetime) -> str:
    """Return a moment in local time, with its date only where that is not today's."""
    local = moment.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == now.astimezone().date() else f"{local:%Y-%m-%d %H:%M}"
