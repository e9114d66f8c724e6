"""The queue as rowferry promises it: a model in memory of its batches and of the ledger, without a database."""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

SETTLED = ("migrated", "kept", "changed", "deleted")
UNSETTLED = ("missing", "conflict", "failed")
HANDED_ON = ("migrated", "kept")
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
    queue: str = "migrate"
    tracks: bool = False
    """Whether the payload has `unsettled`: what the last attempt left is all that the next one reads."""
    unsettled: tuple[int, ...] | None = None
    """What that says; None: nothing yet."""
    only: tuple[int, ...] | None = None
    """What was handed on of the payload's range; None: all of it."""
    is_begun: bool = False
    """Whether the batch that it was split from had settled entries before."""
    is_cut: bool = False
    """Whether entries were put back since the time did not suffice for them."""

    def to_read(self) -> list[int]:
        """Return the entries that are certainly still legacy."""
        return [entry for entry, outcome in self.outcomes.items() if outcome is None or outcome in UNSETTLED]

    def changed(self) -> list[int]:
        """Return the entries that the application had changed, and may have changed back."""
        if self.unsettled is not None:
            return []
        return [entry for entry, outcome in self.outcomes.items() if outcome == "changed"]

    def split(self, id_: int, entries: Iterable[int], crashes: int) -> "ModelBatch":
        """Return the batch that these entries go to."""
        is_begun = self.is_begun or self.has_settled()
        known = (self.queue, self.tracks, self.unsettled, self.only, is_begun)
        return ModelBatch(id_, dict.fromkeys(entries), self.max_attempts, crashes, "INIT", 0, 0, False, *known)

    def has_settled(self) -> bool:
        """Return whether an entry was migrated or kept."""
        return any(outcome in HANDED_ON for outcome in self.outcomes.values())

    def hand_on(
        self, verdict: str, outcomes: Mapping[int, str], *, is_cut: bool
    ) -> tuple[list[int], tuple[int, ...] | None]:
        """Return the entries that the next queue gets of an attempt with these outcomes, and what `only` says of them.

        It gets the range itself where all was done at once; `is_cut`: the attempt has put entries back.
        """
        settled = [entry for entry, outcome in outcomes.items() if outcome in HANDED_ON]
        is_whole = verdict == "DONE" and not (self.is_begun or self.is_cut or is_cut or self.has_settled())
        return settled, self.only if is_whole else tuple(sorted(settled))

    def finish(self, verdict: str, number: int, outcomes: Mapping[int, str], left: Iterable[int] = ()) -> None:
        """Take the outcomes of an attempt; the entries that it has `left` belong to another batch now."""
        self.outcomes = {**self.outcomes, **outcomes}
        if self.tracks and not (verdict == "DONE" and self.unsettled is None):
            self.unsettled = tuple(sorted(entry for entry, outcome in outcomes.items() if outcome in UNSETTLED))
        for entry in left:
            del self.outcomes[entry]
            self.is_cut = True
        self._take(verdict, number)

    def fail(self, verdict: str, number: int) -> None:
        """Take the verdict of an attempt without outcomes."""
        self._take(verdict, min(number, self.max_attempts))
        self.failed_whole = verdict == "ERROR"

    def requeue(self) -> None:
        """Go back in the queue with nothing against it; what is settled stays settled."""
        if self.tracks and self.status == "DONE":
            self.unsettled = ()
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
            "queue_name": self.queue,
            "status": self.status,
            "attempts": self.attempts,
            "requeues": self.requeues,
            "crashes": self.crashes,
            "max_attempts": self.max_attempts,
            "entry_count": len(self.outcomes),
            **{outcome: counts[outcome] for outcome in SETTLED + UNSETTLED},
            "tracks": self.tracks,
            "unsettled": None if self.unsettled is None else list(self.unsettled),
            "only": None if self.only is None else list(self.only),
            "is_begun": self.is_begun,
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
    max_claimed: int | None = None
    """Batches of `migrate` that may be claimed at once."""

    def claimable(self, queue: str, due: Mapping[int, Any]) -> int | None:
        """Return the batch that the next claim gets; `due` holds, of the batches that are due, since when they are."""
        held = {claim.batch_id for claim in self.claims.values()}
        taken = sum(self.batches[id_].queue == "migrate" for id_ in held)
        if queue == "migrate" and self.max_claimed is not None and taken >= self.max_claimed:
            return None
        waiting = [batch for batch in self.batches.values() if batch.status == "INIT" and batch.queue == queue]
        free = [batch.id for batch in waiting if batch.id in due and batch.id not in held]
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
