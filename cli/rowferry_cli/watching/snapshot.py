"""A snapshot of a migration: all that the view shows, at one moment."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from rowferry.db.connection import Connection, call, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.reports.chain import QueueStatus, find_time_left, is_chain_done, read_chain
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
    queue: str


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Batches that wait for their next attempt."""

    batches: int
    next_at: datetime | None
    error: str | None


NONE_LATER = RetryLater(0, None, None)


@dataclass(frozen=True, slots=True)
class WatchedQueue:
    """What the view shows of one queue. Queues work on the same entries, so nothing is added up over them."""

    status: QueueStatus
    tables: dict[str, Counts]
    """By the label of the plan's table."""
    reasons: tuple[Reason, ...] = ()
    """The latest first."""
    retry_later: RetryLater = NONE_LATER

    @property
    def name(self) -> str:
        """Return its name."""
        return self.status.queue

    @property
    def total(self) -> Counts:
        """Return the counts of all tables together."""
        return self.status.counts


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the view shows."""

    migration: str
    moment: datetime
    paused_at: datetime | None
    queues: tuple[WatchedQueue, ...]
    """In the order of their chain."""
    workers: tuple[Worker, ...]
    pause_reason: str | None = None
    """Why workers paused it; None if a person did."""

    @property
    def is_done(self) -> bool:
        """Return whether all batches of all queues are DONE."""
        return is_chain_done([queue.status for queue in self.queues])

    @property
    def time_left(self) -> timedelta | None:
        """Return the estimated time until the last queue is done; None while that is unknown, or nothing waits."""
        return find_time_left([queue.status for queue in self.queues])

    def find_queue(self, name: str | None) -> WatchedQueue | None:
        """Return the queue of that name, else the first that is not done, else the last; None if there is none."""
        named = [queue for queue in self.queues if queue.name == name]
        open_ones = [queue for queue in self.queues if not queue.status.is_done]
        return next(iter([*named, *open_ones, *reversed(self.queues)]), None)

    def find_next(self, name: str | None) -> str | None:
        """Return the name of the queue after the one that `find_queue` returns, the first after the last."""
        names = [queue.name for queue in self.queues]
        looked_at = self.find_queue(name)
        return None if looked_at is None else names[(names.index(looked_at.name) + 1) % len(names)]


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
            queues=tuple(_read_queues(connection, names)),
            workers=tuple(_group_workers(connection.execute(statement("watch_workers")).fetchall())),
        )


def requeue_errors(connection: Connection, migration: str, queue: str | None = None) -> int:
    """Put the batches in ERROR of the migration, or of one queue, back into the queue and return how many."""
    with translated_errors():
        return call(connection, "requeue", None, None, migration, queue)[0]["requeue"]


def _read_queues(connection: Connection, names: dict[str, Any]) -> Iterator[WatchedQueue]:
    tables: dict[str, dict[str, Counts]] = defaultdict(dict)
    for row in connection.execute(statement("watch_tables"), names):
        queue, label = row.pop("queue_name"), row.pop("label")
        tables[queue][label or "?"] = Counts(**row)
    reasons = [Reason(**row) for row in connection.execute(statement("watch_errors"), names)]
    later = {row.pop("queue"): RetryLater(**row) for row in connection.execute(statement("watch_delayed"), names)}
    for status in read_chain(connection, names["migration"]):
        mine = tuple(reason for reason in reasons if reason.queue == status.queue)
        yield WatchedQueue(status, tables[status.queue], mine, later.get(status.queue, NONE_LATER))


def _group_workers(rows: Sequence[dict[str, Any]]) -> Iterator[Worker]:
    for (worker_id, host, pid), held in groupby(rows, key=lambda row: (row["id"], row["host"], row["pid"])):
        batches = [
            ClaimedBatch(row["batch_id"], row["migration"], row["claimed_for"]) for row in held if row["batch_id"]
        ]
        yield Worker(worker_id, host, pid, tuple(batches))
