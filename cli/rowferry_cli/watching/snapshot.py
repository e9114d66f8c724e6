"""A snapshot of a migration: all that the view shows, at one moment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from rowferry.db.connection import Connection, call, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.reports.progress import Counts


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """A batch that a worker has claimed."""

    batch_id: int
    migration: str
    claimed_for: timedelta


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker and its batches, the oldest first."""

    id: str
    host: str
    pid: int
    batches: tuple[ClaimedBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why entries of batches in ERROR were not migrated."""

    outcome: str
    reason: str
    entries: int
    batches: int
    example_key: str
    """Empty if the batch failed before its entries were read."""
    last_failed_at: datetime


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Batches that wait for their next attempt."""

    batches: int
    next_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the view shows."""

    migration: str
    moment: datetime
    paused_at: datetime | None
    tables: dict[str, Counts]
    """By the label of the plan's table."""
    rate: float
    """Entries per second, over the last minute."""
    workers: tuple[Worker, ...]
    reasons: tuple[Reason, ...]
    """The latest first."""
    retry_later: RetryLater
    pause_reason: str | None = None
    """Why workers paused it; None if a person did."""

    @property
    def total(self) -> Counts:
        """Return the counts of all tables together."""
        return Counts(**{f.name: sum(getattr(c, f.name) for c in self.tables.values()) for f in fields(Counts)})

    @property
    def time_left(self) -> timedelta | None:
        """Return the estimated time for the waiting entries; None while the rate is 0."""
        return timedelta(seconds=self.total.waiting / self.rate) if self.rate > 0 else None


def read_snapshot(connection: Connection, migration: str) -> Snapshot:
    """Return a snapshot. Raises DatabaseUnavailable, or UsageError when the migration does not exist any more."""
    with translated_errors():
        row = connection.execute(statement("watch_migration"), {"migration": migration}).fetchone()
        if row is None:
            raise UsageError(f"Migration {migration} does not exist in the database any more.")
        names = {"id": row["id"], "migration": migration}
        return Snapshot(
            migration=row["name"],
            moment=row["moment"],
            paused_at=row["paused_at"],
            pause_reason=row["pause_reason"],
            tables=dict(_label_tables(connection.execute(statement("watch_tables"), names).fetchall())),
            rate=fetch_one(connection, statement("watch_rate"), names)["rate"],
            workers=tuple(_group_workers(connection.execute(statement("watch_workers")).fetchall())),
            reasons=tuple(Reason(**found) for found in connection.execute(statement("watch_errors"), names)),
            retry_later=RetryLater(**fetch_one(connection, statement("watch_delayed"), names)),
        )


def requeue_errors(connection: Connection, migration: str) -> int:
    """Put the migration's batches in ERROR back into the queue and return how many."""
    with translated_errors():
        return call(connection, "requeue", None, None, migration)[0]["requeue"]


def _label_tables(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Counts]]:
    has_several = len({row["queue_name"] for row in rows}) > 1
    for row in rows:
        label, queue = row.pop("label") or "?", row.pop("queue_name")
        yield (f"{label} ({queue})" if has_several else label), Counts(**row)


def _group_workers(rows: Sequence[dict[str, Any]]) -> Iterator[Worker]:
    for (worker_id, host, pid), held in groupby(rows, key=lambda row: (row["id"], row["host"], row["pid"])):
        batches = [
            ClaimedBatch(row["batch_id"], row["migration"], row["claimed_for"]) for row in held if row["batch_id"]
        ]
        yield Worker(worker_id, host, pid, tuple(batches))
