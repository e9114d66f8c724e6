"""Draws batches that have ended: the last ones, the reasons of those in ERROR, and their failed entries."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rowferry.formatting import format_duration, show_text
from rowferry_cli.watch.layout import BAD, GOOD, QUIET, STRONG, cut_rows, line, show_moment
from rowferry_cli.watch.snapshot import FailedEntry, FinishedBatch, Reason


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
