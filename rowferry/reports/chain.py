"""The queues of a migration, in the order of their chain: what waits and is claimed, the slowest, the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rowferry.batch import Outcome
from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.queues import find_queue
from rowferry.reports.progress import Counts
from rowferry.reports.state import show_state


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """One queue of a migration; installed here or not."""

    queue: str
    counts: Counts
    state: str = "running"
    """A word of rowferry.queue_status."""
    is_slowest: bool = False
    """Whether it sets the rate of the chain, and holds its end."""
    claimed: int = 0
    """Batches that live workers have claimed."""
    max_in_hand: int | None = None
    rate: float = 0.0
    """Entries per second, over the last minute."""
    time_left: timedelta | None = None
    """Until this queue and those before it are done, at the rate of ten minutes; None unless the migration is running
    and they move, or where nothing is pending."""
    due_since: datetime | None = None
    """Since when the oldest due batch has been due."""
    is_done: bool = False
    """Whether all its batches are DONE, and none of a queue before it waits."""
    pending_batches: int = 0
    """Batches in INIT, here and in the queues before."""

    @property
    def shown_state(self) -> str:
        """Return the state as people read it; that a queue sets the rate of the chain says that it is running."""
        return "slowest" if self.is_slowest and self.state == "running" else show_state(self.state)

    def as_document(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        counts, left = self.counts, self.time_left
        return {
            "queue": self.queue,
            "state": self.state,
            "slowest": self.is_slowest,
            "batches": {
                "init": counts.batches_init,
                "done": counts.batches_done,
                "error": counts.batches_error,
                "total": counts.batches,
            },
            "in_hand": counts.in_hand,
            "outcomes": {"waiting": counts.waiting, **{str(name): count for name, count in counts.outcomes.items()}},
            "bytes": counts.bytes,
            "claimed": self.claimed,
            "max_in_hand": self.max_in_hand,
            "entries_per_second": self.rate,
            "seconds_left": None if left is None else left.total_seconds(),
            "oldest_due_since": self.due_since and self.due_since.isoformat(),
        }


def read_chain(connection: Connection, migration: str) -> tuple[QueueStatus, ...]:
    """Return the queues of a migration that have batches or settings, in order; none where it does not exist."""
    with translated_errors():
        rows = connection.execute(statement("read_queue_status"), {"migration": migration}).fetchall()
    return tuple(_read_queue(row) for row in rows)


def _read_queue(row: dict[str, Any]) -> QueueStatus:
    counts = {name: row.pop(name) for name in (*_COUNTS, *map(str, Outcome))}
    return QueueStatus(counts=Counts(**counts), **row)


_COUNTS = (
    "batches",
    "batches_init",
    "batches_done",
    "batches_error",
    "entries",
    "waiting",
    "bytes",
    "in_hand",
    "reached",
)


def choose_queues(queues: Sequence[QueueStatus], name: str | None, migration: str) -> tuple[QueueStatus, ...]:
    """Return the queue of that name alone; all that have batches if it is None. Raises UsageError for another name."""
    if name is None:
        return tuple(queue for queue in queues if queue.counts.batches)
    found = tuple(queue for queue in queues if queue.queue == name)
    if not found:
        known = f"it has {', '.join(queue.queue for queue in queues)}" if queues else "nothing is enqueued there yet"
        raise UsageError(f"Migration {migration} has no queue {name!r}; {known}.")
    return found


def find_meanings(queue: str, *, alone: bool) -> dict[str, str]:
    """Return what each outcome means for a queue; nothing for one that is not installed here.

    `alone`: of a migration without rows that move.
    """
    try:
        words = find_queue(queue).choose_words(alone=alone)
        return {str(outcome): meaning for outcome, meaning in words.outcomes.items()}
    except UsageError:
        return {}
