"""Snapshots with a lot to show, and the lines of a view of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from psycopg.rows import DictRow
from rich.console import Console, ConsoleDimensions

from rowferry.batch import Outcome
from rowferry.db.connection import connect
from rowferry_cli.watch.keys import list_keys
from rowferry_cli.watch.poller import State
from rowferry_cli.watch.snapshot import Snapshot, read_snapshot
from rowferry_cli.watch.view import ENDLESS, draw_view

HELP = list_keys(80)
NOW = datetime(2026, 11, 21, 6, 12, 40, tzinfo=UTC).astimezone()
MIGRATION: DictRow = {"name": "avatars", "moment": NOW, "lost": 0}
MIGRATION |= dict.fromkeys(("max_rows_per_second", "max_replica_lag", "replica_lag"))
RUNNING: DictRow = {"state": "running", "since": NOW, "cause": "", "what_to_do": "", "needs_operator": 0}
RUNNING |= {"seconds_left": None, "ends_at": None, "held_by": None}
QUEUE: DictRow = {"queue": "migrate", "state": "running", "is_slowest": False, "is_done": False, "max_claimed": None}
QUEUE |= {"batches": 10, "batches_init": 5, "batches_done": 5, "batches_error": 0, "pending_batches": 5, "claimed": 0}
QUEUE |= {"entries": 100, "waiting": 50, "entries_left": 50, "in_hand": 0, "unsettled": 0, "done_share": 0.5}
QUEUE |= dict.fromkeys(map(str, Outcome), 0) | {"migrated": 50, "rate_1m": 10.0}
QUEUE |= dict.fromkeys(("due_since", "started_at", "finished_at"))
"""Rows of the views, with all that the view shows."""


def shown(
    state: State,
    queue: str | None = None,
    *,
    width: int = 80,
    height: int | None = 24,
    footer: tuple[str, ...] = (HELP,),
) -> list[str]:
    """Return the lines of the view."""
    drawn = StringIO()
    console = Console(file=drawn, width=width, height=height or 1000, force_terminal=False)
    size = ConsoleDimensions(width, height or ENDLESS)
    console.print(draw_view(state, queue, database="app on db:5432", now=NOW, size=size, footer=footer))
    return [line.rstrip() for line in drawn.getvalue().splitlines()]


def make_snapshot(
    tables: int, workers: int, reasons: int, queues: tuple[str, ...] = ("migrate",), **of_queue: Any
) -> Snapshot:
    """Return a snapshot with a lot to show. `of_queue`: other columns of each queue, and of its tables."""
    rows = [QUEUE | of_queue | {"queue": name} for name in queues]
    return Snapshot(
        migration=MIGRATION,
        state=RUNNING,
        queues=rows,
        workers=[make_worker(n, f"host-{n // 8}.example.net", batch_id=n) for n in range(workers)],
        of_queues={
            "tables": [
                row | {"label": f"public.a_table_with_quite_a_long_name_{n}.path"}
                for row in rows
                for n in range(tables)
            ],
            "reasons": [make_reason(name, n) for name in queues for n in range(reasons)],
        },
    )


def make_worker(number: int, host: str = "host-0", **other: Any) -> DictRow:
    """Return a row of a worker, and of its batch if it has one."""
    row = {"id": f"w{number}", "host": host, "pid": number, "silent_for": timedelta(0), "is_silent": False}
    row |= {"batch_id": None, "claimed_for": timedelta(seconds=number), "in_hand": 0, "entry_count": 0}
    return row | other


def make_reason(queue: str, number: int) -> DictRow:
    """Return a reason why entries failed."""
    row: DictRow = {"queue": queue, "outcome": "failed", "entries": 3, "batches": 2, "last_failed_at": NOW}
    words = f"a reason {number} that takes many words to tell"
    return row | {"reason": words, "example_key": f"image/u{number}/me.png"}


def make_running(tables: int = 1, workers: int = 4, reasons: int = 2) -> Snapshot:
    """Return a snapshot of a migration that has been running for 12 min, has a pace, a time left, and last batches."""
    made = make_snapshot(tables, workers, reasons, started_at=NOW - timedelta(minutes=12))
    batch: DictRow = {"queue": "migrate", "entry_count": 10, "finished_at": NOW, "host": "host-0", "error": "2 failed"}
    finished = [
        batch | {"batch_id": n, "status": "ERROR" if n == 2 else "DONE", "duration": timedelta(seconds=n)}
        for n in range(60)
    ]
    rates: list[DictRow] = [{"queue": "migrate", "host": "host-0.example.net", "rate": 10.0}]
    pace: list[DictRow] = [{"queue": "migrate", "rates": [float(n % 7) for n in range(72)]}]
    return replace(
        made,
        state=RUNNING | {"seconds_left": 200.0, "ends_at": NOW + timedelta(seconds=200)},
        of_queues={**made.of_queues, "finished": finished, "host_rates": rates, "pace": pace},
    )


def snapshot_now(migration: str = "avatars") -> Snapshot:
    with connect("test", autocommit=True) as connection:
        return read_snapshot(connection, migration)


def change_queue(snapshot: Snapshot, **columns: Any) -> Snapshot:
    """Return the snapshot with other values in the rows of its queues."""
    return replace(snapshot, queues=[queue | columns for queue in snapshot.queues])
