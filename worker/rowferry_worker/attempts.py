"""Records attempts before the work starts: those of slots that wait together in one round trip (group commit)."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Lock
from typing import Any

from rowferry.batch import Attempt, Batch
from rowferry.errors import DatabaseBusy, DatabaseUnavailable, PoolExhausted, RowferryError
from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring.kernel import has_ended

POOL_TIMEOUT = timedelta(seconds=1)
"""How long a slot that holds a batch waits for PgBouncer to give the ledger a connection: others wait for one too."""


def begin_attempt(ledger: Ledger, batch: Batch, worker_id: str) -> Attempt:
    """Record an attempt at a claimed batch where a crash cannot take it back.

    Raises DatabaseUnavailable when the ledger's connection is lost; PoolExhausted when PgBouncer has none for it: the
    claim holds a connection of the same pool, and must not wait long for another.
    """
    (attempt,) = begin_attempts(ledger, [batch], worker_id)
    return attempt


def begin_attempts(
    ledger: Ledger, batches: Sequence[Batch], worker_id: str, ended: Collection[str] = ()
) -> list[Attempt]:
    """Record an attempt at each of these batches, or none; as `begin_attempt`. `ended`: workers that are dead."""
    ids = [batch.id for batch in batches]
    # An attempt that this worker never heard of must not stay open: it would count as a crash.
    if_lost = "lose_attempts", (ids, worker_id)
    arguments = (ids, [batch.requeues for batch in batches], worker_id, ledger.connected_for(), list(ended))
    within, began = POOL_TIMEOUT if ledger.is_pooled else None, time.monotonic()
    try:
        rows = ledger.call("begin_attempts", *arguments, if_lost=if_lost, within=within)
    except DatabaseUnavailable as error:
        if within is not None and time.monotonic() - began >= within.total_seconds() * 0.9:
            raise PoolExhausted(f"PgBouncer gave the ledger no connection within {POOL_TIMEOUT.seconds} s") from error
        raise
    by_batch: dict[int, list[Attempt]] = defaultdict(list)
    for row in rows:
        by_batch[row["batch_id"]].append(_read_attempt(row))
    return [by_batch[number].pop() for number in ids]  # a batch comes twice if its first slot has just lost it


def _read_attempt(row: dict[str, Any]) -> Attempt:
    history = (row["losses"], row["since_loss"], row["unclear_for"], row["silent_workers"])
    return Attempt(row["attempt_id"], row["number"], row["crashes"], *history, since_first=row["since_first"])


@dataclass(slots=True, eq=False)
class _Waiting:
    """A slot that waits for the record of its attempt."""

    batch: Batch
    woken: Event = field(default_factory=Event)
    leads: bool = False
    """Whether it records the attempts of all that wait."""
    attempt: Attempt | None = None
    error: RowferryError | None = None


class AttemptRecorder:
    """While one slot speaks to the ledger, others come to wait; the first of them then records all their attempts.

    Source: group commit (DeWitt et al., "Implementation Techniques for Main Memory Database Systems", 1984).
    """

    def __init__(self, ledger: Ledger, worker_id: str) -> None:
        """`ledger`: whose connection the slots of the process share."""
        self._ledger = ledger
        self._worker_id = worker_id
        self._lock = Lock()
        self._waiting: list[_Waiting] = []
        self._is_led = False
        self._ended: set[str] = set()
        """The workers of which the kernel has said that they have ended."""

    def note_ended(self, workers: Mapping[str, str]) -> bool:
        """Ask the kernel which of these workers have ended; return whether one has: the next attempt knows."""
        ended = {worker for worker, process in workers.items() if worker in self._ended or has_ended(process)}
        self._ended |= ended
        return bool(ended)

    def begin(self, batch: Batch) -> Attempt:
        """Record an attempt at a claimed batch, with those of other slots; raises as `begin_attempt`."""
        own = _Waiting(batch)
        with self._lock:
            self._waiting.append(own)
            own.leads, self._is_led = not self._is_led, True
        if not own.leads:
            own.woken.wait()  # the ledger's calls have deadlines
        if own.leads:
            self._lead()
        if own.error is not None:
            raise own.error
        if own.attempt is None:
            raise DatabaseUnavailable("The attempt was not recorded.")
        return own.attempt

    def _lead(self) -> None:
        """Record the attempts of all that wait now, and let the first that came meanwhile lead next."""
        with self._lock:
            group, self._waiting = self._waiting, []
        try:
            self._record(group)
        finally:
            with self._lock:
                self._is_led = bool(self._waiting)
                if self._waiting:
                    self._waiting[0].leads = True
                    self._waiting[0].woken.set()
            for waiting in group:
                waiting.woken.set()

    def _record(self, group: list[_Waiting]) -> None:
        """Record the attempts of a group; if PostgreSQL refuses them together, one by one, each with its own error."""
        try:
            attempts = begin_attempts(self._ledger, [waiting.batch for waiting in group], self._worker_id, self._ended)
        except (DatabaseUnavailable, DatabaseBusy) as error:  # the next statement would meet the same
            for waiting in group:
                waiting.error = type(error)(str(error))
        except RowferryError as error:
            if len(group) == 1:
                group[0].error = error
                return
            for waiting in group:
                self._record([waiting])
        else:
            for waiting, attempt in zip(group, attempts, strict=True):
                waiting.attempt = attempt
