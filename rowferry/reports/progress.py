"""How far a run has come: what the view `rowferry.progress` says, less what it said when the run began."""

from dataclasses import dataclass, fields
from datetime import timedelta

from rowferry.batch import Outcome
from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement


@dataclass(frozen=True, slots=True)
class Counts:
    """Batches by status and entries by outcome of one migration."""

    batches: int = 0
    batches_init: int = 0
    batches_done: int = 0
    batches_error: int = 0
    entries: int = 0
    waiting: int = 0
    migrated: int = 0
    kept: int = 0
    changed: int = 0
    deleted: int = 0
    missing: int = 0
    conflict: int = 0
    failed: int = 0
    bytes: int = 0

    @property
    def outcomes(self) -> dict[Outcome, int]:
        """Return the entries by outcome."""
        return {outcome: getattr(self, outcome) for outcome in Outcome}

    @property
    def finished(self) -> int:
        """Return the entries that have an outcome."""
        return sum(self.outcomes.values())

    @property
    def unsettled(self) -> int:
        """Return the entries that somebody has to look at."""
        return sum(count for outcome, count in self.outcomes.items() if not outcome.settled)

    @property
    def balances(self) -> bool:
        """Return whether every entry is accounted for: waiting, or exactly one outcome."""
        return self.entries == self.waiting + self.finished

    def since(self, start: "Counts") -> "Counts":
        """Return what has come about since `start`; what waits is what waits now."""
        gone = {field.name: getattr(self, field.name) - getattr(start, field.name) for field in fields(self)}
        gone |= {"waiting": self.waiting, "batches_init": self.batches_init}
        gone |= {"entries": gone["waiting"] + sum(gone[outcome] for outcome in Outcome)}
        gone |= {"batches": gone["batches_init"] + gone["batches_done"] + gone["batches_error"]}
        return Counts(**gone)


@dataclass(frozen=True, slots=True)
class Pace:
    """A run so far, and the speed that follows from it."""

    counts: Counts
    elapsed: timedelta
    queue: str = "migrate"

    @property
    def deeds(self) -> str:
        """Return what was done so far, in the words of the queue."""
        counts = self.counts
        match self.queue:
            case "verify":
                return f"objects checked {counts.finished:,}, repaired {counts.migrated:,}"
            case "revert":
                return f"rows put back {counts.migrated:,}"
            case _:
                return f"objects copied {counts.migrated}, rows updated {counts.migrated + counts.kept}"

    @property
    def share(self) -> float:
        """Return the finished part of the entries, from 0 to 1; 1 when there are none."""
        return self.counts.finished / self.counts.entries if self.counts.entries else 1.0

    @property
    def rate(self) -> float:
        """Return entries a second since the run began."""
        return self.counts.finished / max(self.elapsed.total_seconds(), 0.001)

    @property
    def time_left(self) -> timedelta | None:
        """Return how long the rest takes at this rate; None before the first entry is finished."""
        return timedelta(seconds=self.counts.waiting / self.rate) if self.rate else None

    def __str__(self) -> str:
        """Return the line that the run's progress is told in."""
        counts, left = self.counts, self.time_left
        line = (
            f"Progress {self.share:4.0%}, batches processed {counts.batches - counts.batches_init}/{counts.batches}, "
            f"{self.deeds}, elapsed time {self.elapsed.total_seconds():.2f} s, {self.rate:.0f} entries/s"
        )
        return line if left is None or not counts.waiting else f"{line}, time left {show_time(left)}"


def read_counts(connection: Connection, migration: str, queue: str = "migrate") -> Counts:
    """Return the counts of one queue of a migration, all zeros while nothing was enqueued."""
    with translated_errors():
        row = connection.execute(statement("read_progress"), {"migration": migration, "queue": queue}).fetchone()
    return Counts(**row) if row else Counts()


def show_time(time: timedelta) -> str:
    """Return a span in the largest two units: `45 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`."""
    seconds = round(time.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    if seconds < 86_400:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3600} h"
