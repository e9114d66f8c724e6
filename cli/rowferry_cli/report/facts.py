"""What the page says of a migration, as the database has it. All times are aware."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rowferry.batch import Outcome
from rowferry.reports.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationFacts:
    """The migration and its server."""

    created_at: datetime
    revision: int
    state: str
    """A word of rowferry.migration_state."""
    since: datetime | None
    """Since when it is in this state."""
    cause: str
    what_to_do: str
    """What holds it, in a word of the same view, and in a sentence with what to type."""
    paused_at: datetime | None
    pause_reason: str | None
    seconds_left: float | None
    done_share: float | None
    """Of the queue that is behind the others, 0 to 1; None without entries."""
    need_somebody: int
    """Entries that need an operator, of all queues."""
    switched_at: datetime | None
    plan: dict[str, Any]
    moment: datetime
    """Of the snapshot: all facts are as they were then."""
    database: str
    postgres: str
    schema_version: str | None
    """The number and name of the last migration of the schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """One queue: how it stands and how it is claimed."""

    queue: str
    state: str
    """A word of rowferry.queue_status."""
    is_slowest: bool
    entries: int
    done_share: float | None
    """The settled share, 0 to 1; None without entries."""
    batches_error: int
    need_somebody: int
    """Entries that need an operator, at least one for each batch in ERROR."""
    next: Sequence[str]
    priority: int
    weight: float
    max_in_hand: int | None
    paused_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFacts:
    """The finished batches of one queue that one host took last."""

    queue: str
    host: str
    batches: int
    tried_twice: int
    tried_more: int
    requeued: int
    deep: int
    settled: int
    unsettled: int
    bytes: int
    began_at: datetime | None
    ended_at: datetime
    longest: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """The attempts of one host at the batches of one queue."""

    queue: str
    host: str
    processes: int
    versions: Sequence[str]
    attempts: int
    done: int
    error: int
    retry: int
    released: int
    lost: int
    running: int
    crashed: int
    """Without a verdict, of workers that live no more."""
    began_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time that the rate of a queue is drawn over, and the length of its intervals."""

    queue: str
    begins_at: datetime
    step: timedelta
    count: int
    """Of intervals."""
    began_at: datetime | None = None
    """The first begin of an attempt: the first interval is counted from it. None: from its own begin."""
    ends_at: datetime | None = None
    """The last end of an attempt: the last interval is counted up to it. None: to its own end."""

    def seconds_of(self, index: int) -> float:
        """Return the length of an interval; the first and the last may be cut short, but count as half a one at least.

        What ends at the begin of an interval was worked on before it.
        """
        first = self.begins_at + index * self.step
        last = first + self.step
        if index == 0 and self.began_at is not None:
            first = self.began_at
        if index == self.count - 1 and self.ends_at is not None:
            last = self.ends_at
        return max(last - first, self.step / 2).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Entries by outcome, of the attempts at a queue's batches that ended within one step from `began_at`."""

    queue: str
    began_at: datetime
    outcomes: Mapping[Outcome, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why entries keep batches in ERROR."""

    migration: str
    queue_name: str
    outcome: str
    reason: str | None
    entries: int
    batches: int
    example_key: str | None
    example_error: str | None
    last_failed_at: datetime | None
    pattern: str | None
    """Of LIKE: it matches this reason alone. None as the reason."""
    takes_on_conflict: bool
    """Whether another try ends alike, unless --on-conflict says what to do with the production object."""
    repair: str | None
    """What to type to repair what a verification found; None: only the cause can be fixed."""
    total: int
    """Of reasons, without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One entry of a reason."""

    queue: str
    outcome: str
    reason: str
    label: str | None
    batch: int
    id: str
    key: str
    error: str
    attempt: int
    failed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Attempts that were retried for the same reason."""

    queue: str
    verdict: str
    error: str | None
    attempts: int
    last_at: datetime | None
    total: int
    """Of such reasons, without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened to the migration, as rowferry.events tells it."""

    at: datetime
    queue: str | None
    """None: all of them."""
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass over rows that stay."""

    label: str
    number: int
    began_at: datetime
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All of one migration, of one snapshot."""

    report: Report
    migration: MigrationFacts
    queues: Sequence[QueueFacts] = ()
    """In the order of the chain."""
    batches: Sequence[BatchFacts] = ()
    attempts: Sequence[AttemptFacts] = ()
    worked: timedelta | None = None
    """For how long at least one attempt ran; None: that is not known."""
    spans: Mapping[str, Span] = field(default_factory=dict[str, Span])
    intervals: Sequence[Interval] = ()
    reasons: Sequence[Reason] = ()
    samples: Sequence[Sample] = ()
    retries: Sequence[Retry] = ()
    events: Sequence[Event] = ()
    """The newest first."""
    passes: Sequence[Pass] = ()
