"""Snapshots with a lot to show, and the lines of a view of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

from rich.console import Console, ConsoleDimensions

from rowferry.reports.chain import QueueStatus
from rowferry.reports.progress import Counts
from rowferry.reports.state import MigrationState
from rowferry_cli.watch.keys import Page, list_keys
from rowferry_cli.watch.poller import State
from rowferry_cli.watch.snapshot import ClaimedBatch, FinishedBatch, Reason, Snapshot, WatchedQueue, Worker
from rowferry_cli.watch.view import draw_view

HELP = list_keys(80)
HELP_WITH_QUEUES = list_keys(80, has_queues=True)
NOW = datetime(2026, 11, 21, 6, 12, 40, tzinfo=UTC).astimezone()
WAITING = Counts(batches=10, batches_init=5, batches_done=5, entries=100, waiting=50, migrated=50)


def shown(
    state: State,
    queue: str | None = None,
    *,
    width: int = 80,
    height: int | None = 24,
    footer: tuple[str, ...] = (HELP,),
    page: Page = "progress",
) -> list[str]:
    """Return the lines of the view."""
    drawn = StringIO()
    console = Console(file=drawn, width=width, height=height or 1000, force_terminal=False)
    size = None if height is None else ConsoleDimensions(width, height)
    console.print(draw_view(state, queue, database="app on db:5432", now=NOW, size=size, footer=footer, page=page))
    return [line.rstrip() for line in drawn.getvalue().splitlines()]


def make_queue(counts: Counts = WAITING, name: str = "migrate", tables: int = 1, reasons: int = 0) -> WatchedQueue:
    """Return a queue with as much to show in each table."""
    status = QueueStatus(queue=name, counts=counts, rate=10.0, is_done=not counts.batches_init)
    named = {f"public.a_table_with_quite_a_long_name_{n}.path": counts for n in range(tables)}
    failed = [
        Reason("failed", f"a reason {n} that takes many words to tell", 3, 2, f"image/u{n}/me.png", NOW, name)
        for n in range(reasons)
    ]
    return WatchedQueue(status, named, tuple(failed))


def make_snapshot(tables: int, workers: int, reasons: int, queues: tuple[str, ...] = ("migrate",)) -> Snapshot:
    """Return a snapshot with a lot to show."""
    return Snapshot(
        migration="avatars",
        moment=NOW,
        stands=MigrationState("running", None),
        queues=tuple(make_queue(name=name, tables=tables, reasons=reasons) for name in queues),
        workers=tuple(
            Worker(f"w{n}", f"host-{n // 8}.example.net", n, (ClaimedBatch(n, "avatars", timedelta(seconds=n)),))
            for n in range(workers)
        ),
    )


def make_running(tables: int = 1, workers: int = 4, reasons: int = 2) -> Snapshot:
    """Return a snapshot of a migration that has been running for 12 min, has a pace, a time left, and last batches."""
    made = make_snapshot(tables, workers, reasons)
    finished = [
        FinishedBatch("migrate", n, "ERROR" if n == 2 else "DONE", 10, timedelta(seconds=n), NOW, "host-0", "2 failed")
        for n in range(60)
    ]
    queue = replace(
        made.queues[0],
        started_at=NOW - timedelta(minutes=12),
        pace=[float(n % 7) for n in range(72)],
        host_rates={"host-0.example.net": 10.0},
        finished=tuple(finished),
    )
    return replace(made, queues=(queue,), stands=MigrationState("running", timedelta(seconds=200)))
