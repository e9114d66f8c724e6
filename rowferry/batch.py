"""Batches, attempts, entries and their results: the data that the queue and its workers exchange."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from rowferry.errors import ObjectError, RowferryError

DEFAULT_BATCH_SIZE = 500
"""Entries in a batch, the unit that is lost when a worker dies and that an operator requeues."""


READ_AGAIN = ("migrated", "kept")
"""Outcomes whose entries the next attempt reads again, where no row says what was done."""


class Outcome(StrEnum):
    """The result of one entry."""

    MIGRATED = "migrated"
    KEPT = "kept"
    CHANGED = "changed"
    DELETED = "deleted"
    MISSING = "missing"
    CONFLICT = "conflict"
    FAILED = "failed"

    def __init__(self, word: str) -> None:
        self.settled = word in {"migrated", "kept", "changed", "deleted"}
        """Whether the entry needs no further work."""


UNSETTLED = tuple(str(outcome) for outcome in Outcome if not outcome.settled)
"""The outcomes that need an operator. Each is counted under its own name: `failed` is one of them, never their sum."""


class Verdict(StrEnum):
    """The result of an attempt. DONE and ERROR become the batch's status; the others leave it INIT."""

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
    """How often the batches that this one was split from killed their workers."""
    fault: Exception | None = None
    """Why its payload cannot be read; its attempt meets it."""

    @property
    def is_of_parts(self) -> bool:
        """Return whether its items are parts of one object's upload."""
        return "upload" in self.payload


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt, as `rowferry.begin_attempt` returns it."""

    id: int
    number: int
    """From 1."""
    crashes: int
    """Earlier attempts that ended with the death of their worker."""
    losses: int = 0
    """Earlier attempts that lost their connection to PostgreSQL while their worker lived."""
    since_loss: timedelta | None = None
    """Time since the last loss."""
    unclear_for: timedelta | None = None
    """Time until it is clear whether the worker of an earlier attempt is dead; None: it is clear."""
    silent_workers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The workers for which it is unclear, each with its process: its kernel, namespaces, id and start."""
    since_first: timedelta | None = None
    """Time since the first attempt began, at the batch that it was split from as well; None: this is the first."""


class Entry(Struct, frozen=True, gc=False):
    """A row of the user's table."""

    id: str
    """As text; of several columns, a JSON array of their texts."""
    key: str
    """What the column holds; of a document, a JSON object of the texts at the plan's path, by their places."""
    objects: tuple[str, ...] = ()
    """The legacy keys that the plan's `objects` computes."""
    optional: tuple[str, ...] = ()
    """The legacy keys that its `optional` computes."""
    values: tuple[Any, ...] = ()
    """The columns that the queue has asked for, as text or None, in their order; of an item, the item itself."""


class EntryResult(Struct, frozen=True, gc=False):
    """The outcome of an entry, with its error if there was one."""

    entry: Entry
    outcome: Outcome
    size_bytes: int = 0
    reason: str = ""
    """A short text that is equal for equal causes, to group by."""
    error: str = ""
    retryable: bool = False
    costs_attempt: bool = True

    @classmethod
    def from_error(
        cls, entry: Entry, error: RowferryError, outcome: Outcome = Outcome.FAILED, key: str | None = None
    ) -> "EntryResult":
        """Return the result of an entry that ended with an error; a failed one names the operation and the server.

        `key`: of the object at fault, where the entry's own text does not say it.
        """
        reason = error.code if isinstance(error, ObjectError) else str(error)
        place = (
            f"{error.where}: " if isinstance(error, ObjectError) and error.where and outcome is Outcome.FAILED else ""
        )
        return cls(
            entry,
            outcome,
            reason=place + reason,
            error=name_key(entry, key) + place + str(error),
            retryable=error.retryable,
            costs_attempt=error.costs_attempt,
        )


@dataclass(frozen=True, slots=True)
class Performed:
    """What a queue has done with the entries of a batch."""

    results: Sequence[EntryResult]
    """One for each entry, but for those of `rest`."""
    rest: Sequence[Entry] = ()
    """Those from the first on that did not end within the time budget: they go back to the queue.

    One behind that first may have a result; it counts where the row has left the batch's range: migrated, or kept.
    """
    goes_on: bool = False
    """Whether the next attempt goes on where this one has come to with the first of `rest`."""
    wait_for: Sequence[str] = ()
    """Keys of objects that other batches are at work on: the batch waits for these, and no attempt counts."""


def name_key(entry: Entry, key: str | None) -> str:
    """Return the beginning of a message about an object of an entry: its key, unless the entry says it."""
    return "" if key in {None, entry.key} else f"{key!r}: "


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an attempt, and how long the batch waits before it is due again."""

    verdict: Verdict
    wait: timedelta = timedelta(0)
    error: str | None = None
