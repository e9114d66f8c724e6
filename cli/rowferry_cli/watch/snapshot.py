"""A snapshot of a migration: all that the view shows, at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rowferry.reports.chain import QueueStatus
from rowferry.reports.coverage import Coverage
from rowferry.reports.progress import Counts
from rowferry.reports.state import DEAD_AFTER, MigrationState, StateWord
from rowferry.reports.unusable import Unusable


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """A batch that a worker has claimed."""

    batch_id: int
    migration: str
    claimed_for: timedelta
    in_hand: int = 0
    """Entries that are settled so far."""
    entry_count: int = 0


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker with a heartbeat in the last 30 s, and its batches, the oldest first."""

    id: str
    host: str
    pid: int
    batches: tuple[ClaimedBatch, ...] = ()
    silent_for: timedelta = timedelta(0)
    """Since its last heartbeat."""
    request_rates: Mapping[str, float] = field(default_factory=dict[str, float])
    """Requests a second that it gets through where a server refuses more, by endpoint, bucket and operation."""
    skips: bool = False
    """Whether it cannot work on the migration, or on a queue of it."""

    @property
    def is_silent(self) -> bool:
        """Return whether a heartbeat is overdue."""
        return self.silent_for >= DEAD_AFTER


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
class FailedEntry:
    """An entry that keeps a batch in ERROR."""

    batch_id: int
    label: str | None
    entry_id: str
    key: str
    outcome: str
    error: str
    failed_at: datetime


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch that became DONE or ERROR."""

    queue: str
    batch_id: int
    status: str
    entries: int
    duration: timedelta | None
    """Of its last attempt; None if it had none."""
    finished_at: datetime
    host: str | None
    error: str | None


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
    started_at: datetime | None = None
    """When its first attempt began."""
    finished_at: datetime | None = None
    """When its last batch ended."""
    pace: Sequence[float] = ()
    """Entries a second in each whole slice of `pace.SLICE`, the latest last."""
    host_rates: Mapping[str, float] = field(default_factory=dict[str, float])
    """Entries a second of each host, over the last minute."""
    finished: tuple[FinishedBatch, ...] = ()
    """The last batches that became DONE or ERROR, the latest first."""

    @property
    def name(self) -> str:
        """Return its name."""
        return self.status.queue

    @property
    def total(self) -> Counts:
        """Return the counts of all tables together."""
        return self.status.counts


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may hold a migration up beside its own work."""

    max_rows_per_second: float | None = None
    """Of the plan; None: no bound."""
    max_replica_lag: timedelta | None = None
    """Of the plan; None: workers do not look."""
    replica_lag: timedelta | None = None
    """Of the slowest replica; None: there is none, or this role may not see it."""
    buckets: tuple[str, ...] = ()
    """Of the plan: workers tell the rates of all that they use."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the view shows."""

    migration: str
    moment: datetime
    stands: MigrationState
    """As the database has it."""
    queues: tuple[WatchedQueue, ...]
    """In the order of their chain."""
    workers: tuple[Worker, ...]
    migrations: tuple[str, ...] = ()
    """The names of all migrations of this database."""
    lost: int = 0
    """Workers that became silent within the last hour, 30 s ago or earlier."""
    coverage: Coverage = field(default_factory=Coverage)
    """Which folders of the legacy bucket the plan leaves out."""
    bounds: Bounds = Bounds()
    unusable: tuple[Unusable, ...] = ()
    """Workers that skip the migration, by reason."""
    standby_wait: str = ""
    """As in the status."""
    failed_entries: tuple[FailedEntry, ...] | str = ()
    """Those of one queue, where they were asked for; or why they cannot be read."""

    @property
    def is_done(self) -> bool:
        """Return whether all batches of all queues are DONE."""
        return self.state == "done"

    @property
    def claimed(self) -> int:
        """Return the batches of all migrations that workers have claimed."""
        return sum(len(worker.batches) for worker in self.workers)

    @property
    def state(self) -> StateWord:
        """Return the state."""
        return self.stands.state

    @property
    def time_left(self) -> timedelta | None:
        """Return the time until the last queue is done, by its rate; None while that is unknown."""
        return self.stands.time_left

    def find_host_rates(self, queue: WatchedQueue | None) -> Mapping[str, float]:
        """Return the entries a second of each host, over the last minute; none while the queue has no rate."""
        return queue.host_rates if queue and queue.status.rate else {}

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

    def find_next_migration(self) -> str:
        """Return the name of the next migration of this database, the first after the last."""
        names = self.migrations or (self.migration,)
        return names[(names.index(self.migration) + 1) % len(names)] if self.migration in names else names[0]
