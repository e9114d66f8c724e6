"""Draws workers and their hosts, why entries failed, and the last batches: a list each, in so many lines."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from psycopg.rows import DictRow
from rich.console import RenderableType
from rich.text import Text

from rowferry.formatting import format_duration, format_rate
from rowferry_cli.watch.layout import BAD, GOOD, QUIET, STRONG, WARNING, cut_rows, line, make_grid, show_moment
from rowferry_cli.watch.snapshot import Snapshot


def count_workers(snapshot: Snapshot) -> int:
    """Return how many live workers there are: each has a row for each of its batches."""
    return len({row["id"] for row in snapshot.workers})


def draw_workers(
    snapshot: Snapshot, looked_at: DictRow | None, lines: int, *, has_hosts: bool
) -> Iterator[RenderableType]:
    """Yield a line that counts them, then in at most so many: each worker if all fit, else each host.

    `has_hosts`: each host before its workers.
    """
    lost, rows = snapshot.migration["lost"], snapshot.workers
    if not rows:
        yield line(f"No worker is running.{f' Lost within an hour: {lost:,}.' if lost else ''}", WARNING)
        return
    number, silent = count_workers(snapshot), len({row["id"] for row in rows if row["is_silent"]})
    claimed = sum(row["batch_id"] is not None for row in rows)
    counts = {"Workers": number, "silent": silent, "lost within an hour": lost, "claimed batches": claimed}
    yield line(", ".join(f"{name}: {n:,}" for name, n in counts.items() if n or name == "claimed batches"), STRONG)
    if has_hosts or number > lines:
        hosts = list(_list_hosts(snapshot, looked_at))
        shown, hidden = cut_rows(hosts, lines - 1)
        headings = [Text(heading, QUIET) for heading in ("host", "workers", "claimed", "entries/s", "oldest batch")]
        yield make_grid("<24 > > > <*", [headings, *shown] if lines > 1 else shown, gap=1)
        if hidden:
            yield line(f"… and {hidden:,} more hosts", QUIET)
        lines -= len(hosts) + 2
        yield from [line("")] if number <= lines else []
    if number <= lines:
        yield make_grid("<24 > <*", _list_workers(snapshot))


def _list_workers(snapshot: Snapshot) -> Iterator[Sequence[RenderableType]]:
    """Yield a line per worker; the host stands only in its first line."""
    last_host = ""
    for (_, host, pid), group in groupby(snapshot.workers, key=lambda row: (row["id"], row["host"], row["pid"])):
        mine = list(group)
        batches = ", ".join(_describe_batch(row) for row in mine if row["batch_id"] is not None)
        skips = any(reason.names(pid, host) for reason in snapshot.unusable)
        text = Text(batches or ("skips it" if skips else "idle"), WARNING if skips else "")
        if mine[0]["is_silent"]:
            silent = f"silent {format_duration(mine[0]['silent_for'])}"
            text = Text.assemble((silent, BAD), (f"  {batches}", QUIET))
        yield host if host != last_host else "", f"{pid}", text
        last_host = host


def _describe_batch(row: DictRow) -> str:
    """Return how far a worker is with a batch, and since when it has it."""
    done = f": {row['in_hand']:,}/{row['entry_count']:,}" if row["in_hand"] else ""
    return f"batch {row['batch_id']}{done} for {format_duration(row['claimed_for'])}"


def _list_hosts(snapshot: Snapshot, looked_at: DictRow | None) -> Iterator[Sequence[RenderableType]]:
    """Yield a line per host, with its rate in the queue that is looked at."""
    moves = looked_at is not None and looked_at["rate_1m"]
    rates = {row["host"]: row["rate"] for row in snapshot.rows("host_rates", looked_at) if moves}
    for host, group in groupby(snapshot.workers, key=lambda row: row["host"]):
        here = list(group)
        silent = len({row["id"] for row in here if row["is_silent"]})
        held = [row for row in here if row["batch_id"] is not None]
        oldest = max(held, key=lambda row: row["claimed_for"], default=None)
        batch = f"{oldest['batch_id']} for {format_duration(oldest['claimed_for'])}" if oldest else ""
        last = Text.assemble((f"{silent:,} silent " if silent else "", BAD), batch)
        rate = format_rate(rates.get(host, 0.0))
        yield host, f"{len({row['id'] for row in here}):,}", f"{len(held):,}", rate, last


def draw_errors(reasons: Sequence[DictRow], lines: int, now: datetime) -> Iterator[RenderableType]:
    """Yield a heading and the reasons in at most so many lines; one line if there are none."""
    if not reasons:
        yield line("No batch is in ERROR.", QUIET)
        return
    yield line("Latest errors", STRONG)
    shown, hidden = cut_rows(reasons, lines)
    rows = [
        (
            f"{row['entries']:,}",
            Text(row["outcome"], BAD),
            row["reason"] or "",
            show_moment(row["last_failed_at"], now),
            line(row["example_key"], QUIET),
        )
        for row in shown
    ]
    yield from [make_grid("> < <* < <*", rows, gap=1)] if rows else []
    if hidden:
        yield line(f"… and {hidden:,} more reasons: rowferry errors", QUIET)


def draw_finished(batches: Sequence[DictRow], lines: int, now: datetime) -> Iterator[RenderableType]:
    """Yield a heading and the last finished and failed batches in at most so many lines."""
    if lines < 3:
        return
    if not batches:
        yield line("No batch has ended within half an hour.", QUIET)
        return
    yield line("Last batches", STRONG)
    headings = [Text(heading, QUIET) for heading in ("ended", "batch", "", "entries", "took", "host, or error")]
    rows = [
        (
            Text(show_moment(row["finished_at"], now), QUIET),
            f"{row['batch_id']}",
            Text(row["status"], BAD if row["status"] == "ERROR" else GOOD),
            f"{row['entry_count']:,}",
            format_duration(row["duration"]) if row["duration"] is not None else "",
            line(row["error"] if row["status"] == "ERROR" and row["error"] else row["host"] or "", QUIET),
        )
        for row in batches[: lines - 2]
    ]
    yield make_grid("< > < > > <*", [headings, *rows])
