"""Station 1 of 3: read what there is to see of a migration, at one moment."""

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
class Hand:
    """A batch in a worker's hand."""

    batch_id: int
    migration: str
    held_for: timedelta


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that lives, and what it holds, the oldest first."""

    id: str
    host: str
    pid: int
    hands: tuple[Hand, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some entries of batches in ERROR were not migrated."""

    outcome: str
    reason: str
    entries: int
    batches: int
    example_key: str
    """Empty where the batch stopped before its entries were read."""
    last_failed_at: datetime


@dataclass(frozen=True, slots=True)
class Resting:
    """Batches that wait for their next attempt."""

    batches: int
    next_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Picture:
    """All that a frame shows."""

    migration: str
    moment: datetime
    paused_at: datetime | None
    tables: dict[str, Counts]
    """By the label of the plan's [[entries]]."""
    rate: float
    """Entries a second, of the last minute."""
    workers: tuple[Worker, ...]
    reasons: tuple[Reason, ...]
    """The last first."""
    resting: Resting
    pause_reason: str | None = None
    """Why workers have paused it; None where a person did."""

    @property
    def total(self) -> Counts:
        """Return the counts over all tables."""
        return Counts(**{f.name: sum(getattr(c, f.name) for c in self.tables.values()) for f in fields(Counts)})

    @property
    def time_left(self) -> timedelta | None:
        """Return how long the rest takes at the rate of the last minute; None while nothing moves."""
        return timedelta(seconds=self.total.waiting / self.rate) if self.rate > 0 else None


def read_picture(connection: Connection, migration: str) -> Picture:
    """Return what there is to see. Raises DatabaseUnavailable, or UsageError when the migration is gone."""
    with translated_errors():
        row = connection.execute(statement("watch_migration"), {"migration": migration}).fetchone()
        if row is None:
            raise UsageError(f"Migration {migration} is gone from the database.")
        names = {"id": row["id"], "migration": migration}
        return Picture(
            migration=row["name"],
            moment=row["moment"],
            paused_at=row["paused_at"],
            pause_reason=row["pause_reason"],
            tables=dict(_label_tables(connection.execute(statement("watch_tables"), names).fetchall())),
            rate=fetch_one(connection, statement("watch_rate"), names)["rate"],
            workers=tuple(_group_workers(connection.execute(statement("watch_workers")).fetchall())),
            reasons=tuple(Reason(**found) for found in connection.execute(statement("watch_errors"), names)),
            resting=Resting(**fetch_one(connection, statement("watch_delayed"), names)),
        )


def requeue_errors(connection: Connection, migration: str) -> int:
    """Put the migration's batches in ERROR back in the queue and return how many."""
    with translated_errors():
        return call(connection, "requeue", None, None, migration)[0]["requeue"]


def _label_tables(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Counts]]:
    for row in rows:
        label, queue = row.pop("label") or "?", row.pop("queue_name")
        yield (label if queue == "migrate" else f"{label} ({queue})"), Counts(**row)


def _group_workers(rows: Sequence[dict[str, Any]]) -> Iterator[Worker]:
    for (worker_id, host, pid), held in groupby(rows, key=lambda row: (row["id"], row["host"], row["pid"])):
        hands = [Hand(row["batch_id"], row["migration"], row["held_for"]) for row in held if row["batch_id"]]
        yield Worker(worker_id, host, pid, tuple(hands))
