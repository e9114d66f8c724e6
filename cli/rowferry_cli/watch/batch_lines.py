"""The lines of queues and of batches."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rowferry.formatting import format_duration, format_rate, show_text
from rowferry_cli.watch.layout import (
    BAD,
    GOOD,
    QUIET,
    STATE_STYLES,
    STRONG,
    WARNING,
    cut_rows,
    line,
    show_moment,
    show_share,
)
from rowferry_cli.watch.snapshot import FailedEntry, FinishedBatch, Reason, Snapshot, WatchedQueue

HEADINGS = ("done", "waiting", "claimed", "entries/s", "oldest due", "ERROR")
SLOWEST = f"{WARNING} {STRONG}"


DROPPED_FIRST = ("oldest due", "claimed", "ERROR", "waiting", "entries/s")
"""Columns that are left out, in this order, where the terminal is too narrow for all."""
LONGEST_NAME = 22
GAP = 2


def draw_queues(
    snapshot: Snapshot, looked_at: WatchedQueue | None, lines: int, columns: int
) -> Iterator[RenderableType]:
    """Yield several queues in at most so many lines, under their headings; `looked_at` is marked and always shown."""
    queues = snapshot.queues
    if len(queues) < 2 or looked_at is None:
        return
    rows = max(lines - 1, 1)
    first, last = find_window(len(queues), queues.index(looked_at), rows)
    shown = [Text(heading, QUIET) for heading in ("  queue", *HEADINGS, "")]
    table = [shown] if lines > 1 else []
    table += [list(_describe(queue, snapshot, is_looked_at=queue is looked_at)) for queue in queues[first:last]]
    yield _make_grid(table, columns)
    if rows > 1 and last - first < len(queues):
        yield line(f"… and {len(queues) - (last - first):,} more queues", QUIET)


def _make_grid(table: Sequence[Sequence[Text]], columns: int) -> Table:
    """Return the rows beside one another, without the columns that do not fit."""
    widths = [max(cell.cell_len for cell in column) for column in zip(*table, strict=True)]
    widths[0] = min(widths[0], LONGEST_NAME)
    kept = set(range(len(widths)))
    for heading in DROPPED_FIRST:
        if sum(widths[place] + GAP for place in kept) - GAP > columns:
            kept.remove(1 + HEADINGS.index(heading))
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=LONGEST_NAME)
    for place in sorted(kept)[1:]:
        grid.add_column(justify="right" if place <= len(HEADINGS) else "left", no_wrap=True)
    for row in table:
        grid.add_row(*(cell for place, cell in enumerate(row) if place in kept))
    return grid


def find_window(count: int, index: int, rows: int) -> tuple[int, int]:
    """Return the first of `count` rows to show, and the one after the last: with `index`, the middle one if possible.

    All if they fit into `rows`; else one less, for the line that counts the others.
    """
    if count <= rows:
        return 0, count
    shown = max(rows - 1, 1)
    first = min(max(index - shown // 2, 0), count - shown)
    return first, first + shown


def _describe(queue: WatchedQueue, snapshot: Snapshot, *, is_looked_at: bool) -> Iterator[Text]:
    status, counts = queue.status, queue.total
    yield Text(f"{'>' if is_looked_at else ' '} {show_text(queue.name)}", STRONG if is_looked_at else "")
    yield Text(show_share(counts) if counts.batches else "")
    yield Text(f"{counts.waiting - counts.in_hand:,}")
    yield Text(f"{status.claimed:,}" if status.max_in_hand is None else f"{status.claimed:,}/{status.max_in_hand:,}")
    yield Text(format_rate(status.rate))
    yield Text(format_duration(max(snapshot.moment - status.due_since, timedelta(0))) if status.due_since else "")
    yield Text(f"{counts.batches_error:,}" if counts.batches_error else "", BAD)
    style = SLOWEST if status.is_slowest else STATE_STYLES.get(status.state, "") if status.state != "running" else ""
    yield Text(status.shown_state, style)


def draw_errors(reasons: Sequence[Reason], lines: int, now: datetime) -> Iterator[RenderableType]:
    """Yield a heading and the reasons in at most so many lines; one line if there are none."""
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


def draw_finished(batches: Sequence[FinishedBatch], lines: int, now: datetime) -> Iterator[RenderableType]:
    """Yield a heading and the last finished and failed batches in at most so many lines."""
    if lines < 3:
        return
    if not batches:
        yield line("No batch has ended within half an hour.", QUIET)
        return
    yield line("Last batches", STRONG)
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0))
    for justify in ("left", "right", "left", "right", "right"):
        grid.add_column(justify=justify, no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_row(*(Text(heading, QUIET) for heading in ("ended", "batch", "", "entries", "took", "host, or error")))
    for batch in batches[: lines - 2]:
        has_failed = batch.status == "ERROR"
        took = format_duration(batch.duration) if batch.duration is not None else ""
        tail = show_text(batch.error) if has_failed and batch.error else show_text(batch.host or "")
        grid.add_row(
            Text(show_moment(batch.finished_at, now), QUIET),
            f"{batch.batch_id}",
            Text(batch.status, BAD if has_failed else GOOD),
            f"{batch.entries:,}",
            took,
            Text(tail, QUIET),
        )
    yield grid


def draw_failures(
    failures: Sequence[FailedEntry] | str, queue: str, lines: int, now: datetime
) -> Iterator[RenderableType]:
    """Yield the failed entries of a queue in at most so many lines, two an entry; or why they cannot be read."""
    yield line(f"Failed entries of {queue}, the last first", STRONG)
    if isinstance(failures, str):
        yield line(failures, BAD)
        return
    if not failures:
        yield line("No entry keeps a batch in ERROR.", QUIET)
    rows = max((lines - 2) // 2, 1)
    for failure in failures[:rows]:
        head = Text.assemble(
            (f"{show_moment(failure.failed_at, now)} ", QUIET),
            (f"{failure.outcome} ", BAD),
            (f"{show_text(failure.label or '')} {show_text(failure.entry_id)} ", STRONG),
            show_text(failure.key),
        )
        yield line(head)
        yield line(f"  {show_text(failure.error)} (batch {failure.batch_id})", QUIET)
    if len(failures) > rows:
        yield line("… and more: rowferry errors --entries", QUIET)
