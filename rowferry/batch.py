"""A batch, its entries and what became of each: the data that pass from station to station."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from rowferry.errors import ObjectError, RowferryError


class Outcome(StrEnum):
    """What became of one entry."""

    MIGRATED = "migrated"
    KEPT = "kept"
    CHANGED = "changed"
    DELETED = "deleted"
    MISSING = "missing"
    CONFLICT = "conflict"
    FAILED = "failed"

    @property
    def settled(self) -> bool:
        """Return whether nobody needs to look at the entry again."""
        return self in _SETTLED


_SETTLED = (Outcome.MIGRATED, Outcome.KEPT, Outcome.CHANGED, Outcome.DELETED)


class Verdict(StrEnum):
    """What an attempt ends with; DONE and ERROR are also the batch's status, the other two leave it INIT."""

    DONE = "DONE"
    ERROR = "ERROR"
    RETRY = "RETRY"
    RELEASED = "RELEASED"


@dataclass(frozen=True, slots=True)
class Batch:
    """A claimed batch, as `rowferry.claim_batch` returns it."""

    id: int
    migration_id: int
    revision: int
    queue_name: str
    payload: dict[str, Any]
    entry_count: int
    max_attempts: int
    requeues: int
    crashes: int = 0
    """How often the batches that this one was split from have killed their workers."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt, as `rowferry.begin_attempt` returns it."""

    id: int
    number: int
    """1 for the first that counts."""
    crashes: int
    """Attempts before this one that ended with the death of their worker."""
    losses: int = 0
    """Attempts before this one that lost their connection to PostgreSQL while their worker lived."""
    since_loss: timedelta | None = None
    """How long ago the last of them did."""
    unclear_for: timedelta | None = None
    """How long it will not be clear whether the worker of another attempt is dead; None: it is."""


class Entry(Struct, frozen=True, gc=False):
    """One row of the user's table: its id as text, and the key it holds."""

    id: str
    key: str


class EntryResult(Struct, frozen=True, gc=False):
    """What became of one entry, and the error where there was one."""

    entry: Entry
    outcome: Outcome
    size_bytes: int = 0
    reason: str = ""
    """A few words that are the same for the same cause, to group by."""
    error: str = ""
    retryable: bool = False
    costs_attempt: bool = True

    @classmethod
    def from_error(cls, entry: Entry, error: RowferryError, outcome: Outcome = Outcome.FAILED) -> "EntryResult":
        """Return the result of an entry that an error ended; of one that failed, it tells which server refused what."""
        reason = error.code if isinstance(error, ObjectError) else str(error)
        place = (
            f"{error.where}: " if isinstance(error, ObjectError) and error.where and outcome is Outcome.FAILED else ""
        )
        return cls(
            entry,
            outcome,
            reason=place + reason,
            error=place + str(error),
            retryable=error.retryable,
            costs_attempt=error.costs_attempt,
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an attempt; `wait` is how long the batch rests before it is due again."""

    verdict: Verdict
    wait: timedelta = timedelta(0)
    error: str | None = None


def count_outcomes(results: Iterable[EntryResult]) -> dict[Outcome, int]:
    """Return how many entries had each outcome, all seven of them, zeros included."""
    outcomes = [result.outcome for result in results]
    return {outcome: outcomes.count(outcome) for outcome in Outcome}
