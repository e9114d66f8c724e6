"""Draws the workers and their hosts: what each has claimed, its rate, and which are silent."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rowferry.formatting import format_duration, format_rate, show_text
from rowferry_cli.watch.layout import BAD, QUIET, STRONG, WARNING, cut_rows, line
from rowferry_cli.watch.snapshot import ClaimedBatch, Snapshot, WatchedQueue, Worker

COLUMNS_FOR_BARS = 80
"""From so many columns on, the rates of hosts are compared by bars."""


def draw_workers(snapshot: Snapshot, looked_at: WatchedQueue | None, lines: int) -> Iterator[RenderableType]:
    """Yield a line that counts them, then at most so many: one a worker if all fit, else one a host."""
    yield _count_workers(snapshot)
    workers = snapshot.workers
    if not workers:
        return
    fits = len(workers) <= lines
    rows = list(_list_workers(workers) if fits else _list_hosts(workers, snapshot.find_host_rates(looked_at)))
    shown, hidden = cut_rows(rows, lines)
    yield from [_make_grid(shown)] if shown else []
    if hidden:
        yield line(f"… and {hidden:,} more hosts", QUIET)


def draw_hosts(
    snapshot: Snapshot, looked_at: WatchedQueue | None, lines: int, columns: int
) -> Iterator[RenderableType]:
    """Yield the same for a wide terminal: a table of hosts, and below it the workers if there is room for all."""
    yield _count_workers(snapshot)
    workers = snapshot.workers
    hosts = [(host, list(group)) for host, group in groupby(workers, key=lambda worker: worker.host)]
    if not hosts or lines < 2:
        return
    shown, hidden = cut_rows(hosts, lines - 1)
    yield _make_table(shown, snapshot.find_host_rates(looked_at), has_bars=columns >= COLUMNS_FOR_BARS)
    if hidden:
        yield line(f"… and {hidden:,} more hosts", QUIET)
    elif len(workers) <= lines - 2 - len(hosts):
        yield line("")
        yield _make_grid(_list_workers(workers))


def _make_table(hosts: Sequence[tuple[str, Sequence[Worker]]], rates: Mapping[str, float], *, has_bars: bool) -> Table:
    """Return a row a host, under headings."""
    headings = ["host", "workers", "claimed", "entries/s", *([""] if has_bars else []), "oldest batch"]
    grid = Table.grid(expand=True, padding=(0, 2 if has_bars else 1, 0, 0))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
    for _ in range(3):
        grid.add_column(justify="right", no_wrap=True)
    if has_bars:
        grid.add_column(ratio=1)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=None if has_bars else 1)
    grid.add_row(*(Text(heading, QUIET) for heading in headings))
    most = max([1.0, *rates.values()])
    for host, here in hosts:
        rate = rates.get(host, 0.0)
        bars = [ProgressBar(most, rate, complete_style="cyan", finished_style="cyan")] if has_bars else []
        claimed = f"{sum(len(worker.batches) for worker in here):,}"
        grid.add_row(Text(show_text(host)), f"{len(here):,}", claimed, format_rate(rate), *bars, _describe_host(here))
    return grid


def _make_grid(rows: Iterable[tuple[str, Text]]) -> Table:
    """Return hosts beside texts, which are truncated first."""
    grid = Table.grid(expand=True, padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for host, text in rows:
        grid.add_row(Text(show_text(host)), text)
    return grid


def _count_workers(snapshot: Snapshot) -> Text:
    workers = snapshot.workers
    if not workers:
        gone = f" Lost within an hour: {snapshot.lost:,}." if snapshot.lost else ""
        return line(f"No worker is running.{gone}", WARNING)
    silent = sum(worker.is_silent for worker in workers)
    facts = [f"Workers: {len(workers):,}"]
    facts += [f"silent: {silent:,}"] if silent else []
    facts += [f"lost within an hour: {snapshot.lost:,}"] if snapshot.lost else []
    facts += [f"claimed batches: {snapshot.claimed:,}"]
    return line(", ".join(facts), STRONG)


def _list_workers(workers: Sequence[Worker]) -> Iterator[tuple[str, Text]]:
    """Yield a line per worker; the host stands only in its first line."""
    last_host = ""
    for worker in workers:
        batches = ", ".join(_describe_batch(one) for one in worker.batches)
        text = Text(f"{worker.pid}  ")
        if worker.is_silent:
            text.append(f"silent {format_duration(worker.silent_for)}", BAD)
            text.append(f"  {batches}", QUIET)
        else:
            text.append(batches or ("skips it" if worker.skips else "idle"), WARNING if worker.skips else "")
        yield worker.host if worker.host != last_host else "", text
        last_host = worker.host


def _describe_batch(batch: ClaimedBatch) -> str:
    """Return how far a worker is with a batch, and since when it has it."""
    done = f": {batch.in_hand:,}/{batch.entry_count:,}" if batch.in_hand else ""
    return f"batch {batch.batch_id}{done} for {format_duration(batch.claimed_for)}"


def _list_hosts(workers: Sequence[Worker], rates: Mapping[str, float]) -> Iterator[tuple[str, Text]]:
    """Yield a line per host, if there is no room for a line per worker."""
    for host, group in groupby(workers, key=lambda worker: worker.host):
        here = list(group)
        silent = sum(worker.is_silent for worker in here)
        text = Text(f"workers: {len(here):,}")
        text.append(f", silent: {silent:,}" if silent else "", BAD)
        text.append(f", batches: {sum(len(worker.batches) for worker in here):,}")
        text.append(f", {format_rate(rates[host])} entries/s" if host in rates else "")
        oldest = _find_oldest(here)
        text.append(f", the oldest is {oldest.batch_id} for {format_duration(oldest.claimed_for)}" if oldest else "")
        yield host, text


def _describe_host(here: Sequence[Worker]) -> Text:
    """Return how many workers are silent, and the oldest batch."""
    silent, oldest = sum(worker.is_silent for worker in here), _find_oldest(here)
    batch = f"{oldest.batch_id} for {format_duration(oldest.claimed_for)}" if oldest else ""
    return Text.assemble((f"{silent:,} silent " if silent else "", BAD), batch)


def _find_oldest(here: Sequence[Worker]) -> ClaimedBatch | None:
    batches = [batch for worker in here for batch in worker.batches]
    return max(batches, key=lambda batch: batch.claimed_for, default=None)
