"""The queue as rowferry promises it: a model in memory of its batches and of the ledger, without a database."""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

SETTLED = ("migrated", "kept", "changed", "deleted")
UNSETTLED = ("missing", "conflict", "failed")
COUNTED = (None, "DONE", "RETRY", "ERROR")
"""Verdicts of attempts that cost one of `max_attempts`; None: the worker died, or is at it."""


@dataclass
class ModelAttempt:
    """One line of the ledger."""

    batch_id: int
    requeues: int
    number: int
    verdict: str | None = None


@dataclass
class ModelBatch:
    """A batch, with what became of each of its entries; None: not processed yet."""

    id: int
    outcomes: dict[int, str | None]
    max_attempts: int
    crashes: int = 0
    """Inherited from the batch that this one was split from."""
    status: str = "INIT"
    attempts: int = 0
    requeues: int = 0
    failed_whole: bool = False
    """ERROR without outcomes: what is not settled counts as failed."""

    def to_read(self) -> list[int]:
        """Return the entries that are certainly still legacy."""
        return [entry for entry, outcome in self.outcomes.items() if outcome is None or outcome in UNSETTLED]

    def changed(self) -> list[int]:
        """Return the entries that the application had changed, and may have changed back."""
        return [entry for entry, outcome in self.outcomes.items() if outcome == "changed"]

    def finish(self, verdict: str, number: int, outcomes: Mapping[int, str], left: Iterable[int] = ()) -> None:
        """Take the outcomes of an attempt; the entries that it has `left` belong to another batch now."""
        self.outcomes = {**self.outcomes, **outcomes}
        for entry in left:
            del self.outcomes[entry]
        self._take(verdict, number)

    def fail(self, verdict: str, number: int) -> None:
        """Take the verdict of an attempt without outcomes."""
        self._take(verdict, min(number, self.max_attempts))
        self.failed_whole = verdict == "ERROR"

    def requeue(self) -> None:
        """Go back in the queue with nothing against it; what is settled stays settled."""
        self.outcomes = {entry: None if out in UNSETTLED else out for entry, out in self.outcomes.items()}
        self.status, self.attempts, self.crashes, self.failed_whole = "INIT", 0, 0, False
        self.requeues += 1

    def _take(self, verdict: str, number: int) -> None:
        self.status = verdict if verdict in {"DONE", "ERROR"} else "INIT"
        self.attempts = self.attempts if verdict == "RELEASED" else number

    def row(self) -> dict[str, Any]:
        """Return what the table must hold."""
        counts = Counter(outcome for outcome in self.outcomes.values() if outcome is not None)
        if self.failed_whole:
            counts["failed"] += sum(outcome is None for outcome in self.outcomes.values())
        return {
            "id": self.id,
            "status": self.status,
            "attempts": self.attempts,
            "requeues": self.requeues,
            "crashes": self.crashes,
            "max_attempts": self.max_attempts,
            "entry_count": len(self.outcomes),
            **{outcome: counts[outcome] for outcome in SETTLED + UNSETTLED},
        }

    def failures(self) -> set[tuple[int, int, str]]:
        """Return the entries whose outcome must be told one by one."""
        told = (*UNSETTLED, "changed", "deleted")
        return {(self.id, entry, outcome) for entry, outcome in self.outcomes.items() if outcome in told}


@dataclass
class ModelClaim:
    """What a session holds in its open transaction."""

    batch_id: int
    attempt_id: int | None = None
    number: int = 0
    crashes: int = 0
    losses: int = 0
    written: list[ModelBatch] = field(default_factory=list)
    """The batches as they are after the COMMIT, once a verdict is written; the first is the claimed one."""
    verdict: str | None = None


@dataclass
class QueueModel:
    """Every batch, the whole ledger, and what each session holds."""

    batches: dict[int, ModelBatch] = field(default_factory=dict)
    ledger: dict[int, ModelAttempt] = field(default_factory=dict)
    claims: dict[int, ModelClaim] = field(default_factory=dict)
    """By the number of the session."""
    paused: bool = False

    def claimable(self, due: Mapping[int, Any]) -> int | None:
        """Return the batch that the next claim gets; `due` holds, of the batches that are due, since when they are."""
        held = {claim.batch_id for claim in self.claims.values()}
        free = [b.id for b in self.batches.values() if b.status == "INIT" and b.id in due and b.id not in held]
        return min(free, key=lambda id_: (due[id_], id_), default=None) if not self.paused else None

    def begin(self, claim: ModelClaim) -> tuple[int, int, int]:
        """Return the number that an attempt at the claimed batch gets, and the crashes and losses before it."""
        batch = self.batches[claim.batch_id]
        past = [a for a in self.ledger.values() if (a.batch_id, a.requeues) == (batch.id, batch.requeues)]
        verdicts = [a.verdict for a in past]
        return sum(v in COUNTED for v in verdicts) + 1, verdicts.count(None), verdicts.count("LOST")

    def strikes(self, claim: ModelClaim) -> int:
        """Return how often the claimed batch, or what it was split from, has killed a worker or lost too much."""
        batch = self.batches[claim.batch_id]
        return batch.crashes + self.own_strikes(claim)

    def own_strikes(self, claim: ModelClaim) -> int:
        free = 1 if self.batches[claim.batch_id].crashes else 2
        return claim.crashes + max(0, claim.losses - free)

    def policy(self, claim: ModelClaim) -> str:
        """Return what the claimed batch calls for, given how often it has killed its workers."""
        batch = self.batches[claim.batch_id]
        crashes, own = self.strikes(claim), self.own_strikes(claim)
        if own and crashes >= 2 and len(batch.outcomes) > 1:
            return "BISECT"
        if (own and crashes >= batch.max_attempts) or claim.number > batch.max_attempts:
            return "FAIL"
        return "RUN_SLOWLY" if crashes else "RUN"

    def write(self, claim: ModelClaim, verdict: str, *more: ModelBatch) -> ModelBatch:
        """Note that a verdict is written and not committed; return the batch as it will be, to be changed."""
        claim.verdict = verdict
        claim.written = [deepcopy(self.batches[claim.batch_id]), *more]
        return claim.written[0]

    def commit(self, session: int) -> None:
        """Rows and verdict appear together."""
        claim = self.claims.pop(session)
        self.batches |= {batch.id: batch for batch in claim.written}
        if claim.attempt_id is not None and claim.verdict is not None:
            self.ledger[claim.attempt_id].verdict = claim.verdict

    def roll_back(self, session: int, verdict: str | None) -> None:
        """Nothing of it has happened; the ledger is told why, or nothing where the worker died."""
        claim = self.claims.pop(session)
        if claim.attempt_id is not None and verdict is not None:
            self.ledger[claim.attempt_id].verdict = verdict

    def prune(self) -> int:
        """Forget what is DONE, with its attempts, and return how many batches that were."""
        done = {batch.id for batch in self.batches.values() if batch.status == "DONE"}
        self.batches = {id_: batch for id_, batch in self.batches.items() if id_ not in done}
        self.ledger = {id_: attempt for id_, attempt in self.ledger.items() if attempt.batch_id not in done}
        return len(done)
