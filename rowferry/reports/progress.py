"""Progress of a run: the view `rowferry.progress` now, minus the same view at the start."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

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
    in_hand: int = 0
    """Of the waiting entries, those that workers have settled inside their batches, before the verdicts."""

    @property
    def outcomes(self) -> dict[Outcome, int]:
        """Return entries by outcome."""
        return {outcome: getattr(self, outcome) for outcome in Outcome}

    @property
    def finished(self) -> int:
        """Return the entries that have an outcome."""
        return sum(self.outcomes.values())

    @property
    def worked_off(self) -> int:
        """Return the entries that have an outcome, and those in hand; all but one at most while a batch is open.

        The death of a worker does not lower it: what the worker had in hand is found again.
        """
        return self.finished + min(self.in_hand, max(self.waiting - 1, 0))

    @property
    def percent(self) -> int:
        """Return `worked_off` in per cent, rounded down: 100 only when nothing waits, and no listing may find more."""
        if not self.entries:
            return 0 if self.batches_init else 100
        return 100 * self.worked_off // self.entries

    @property
    def unsettled(self) -> int:
        """Return the entries that need an operator's decision."""
        return sum(count for outcome, count in self.outcomes.items() if not outcome.settled)

    @property
    def balances(self) -> bool:
        """Return whether waiting entries and outcomes add up to all entries."""
        return self.entries == self.waiting + self.finished

    def since(self, start: "Counts") -> "Counts":
        """Return the difference to `start`; what waits or is in hand, and `batches_init`, stay absolute.

        An entry that had an outcome, and is read again, counts where it is now: no count falls below zero.
        """
        gone = {field.name: max(0, getattr(self, field.name) - getattr(start, field.name)) for field in fields(self)}
        gone |= {name: getattr(self, name) for name in ("waiting", "batches_init", "in_hand")}
        gone |= {"entries": gone["waiting"] + sum(gone[outcome] for outcome in Outcome)}
        gone |= {"batches": gone["batches_init"] + gone["batches_done"] + gone["batches_error"]}
        return Counts(**gone)


def read_counts(connection: Connection, migration: str, queue: str) -> Counts:
    """Return the counts of one queue of a migration, all zeros while nothing was enqueued."""
    return read_counts_of(connection, migration, [queue])[queue]


def read_counts_of(connection: Connection, migration: str, queues: Iterable[str]) -> dict[str, Counts]:
    """Return the same of several queues, at one moment: a batch that one hands on to another is in one of them."""
    names = list(queues)
    with translated_errors():
        rows = connection.execute(statement("read_progress"), {"migration": migration, "queues": names}).fetchall()
    found = {row["queue_name"]: Counts(**{field.name: row[field.name] for field in fields(Counts)}) for row in rows}
    return {name: found.get(name, Counts()) for name in names}
