"""Records attempts before the work starts: those of slots that wait together in one round trip (group commit)."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from threading import Lock
from typing import Any

from rowferry.batch import Attempt, Batch
from rowferry.errors import DatabaseBusy, DatabaseUnavailable, PoolExhausted, RowferryError
from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring.kernel import has_ended

_Waiting = tuple[Batch, Future[Attempt]]
"""The claimed batch of a slot, and the record of its attempt, once there is one."""
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


class AttemptRecorder:
    """While one slot speaks to the ledger, others come to wait; the first of them then records all their attempts.

    Source: group commit (DeWitt et al., "Implementation Techniques for Main Memory Database Systems", 1984).
    """

    def __init__(self, ledger: Ledger, worker_id: str) -> None:
        """`ledger`: whose connection the slots of the process share."""
        self._ledger = ledger
        self._worker_id = worker_id
        self._speaking = Lock()
        """Of the slot that records."""
        self._lock = Lock()
        """Of the list of those that wait."""
        self._waiting: list[_Waiting] = []
        self._ended: set[str] = set()
        """The workers of which the kernel has said that they have ended."""

    def note_ended(self, workers: Mapping[str, str]) -> bool:
        """Ask the kernel which of these workers have ended; return whether one has: the next attempt knows."""
        ended = {worker for worker, process in workers.items() if worker in self._ended or has_ended(process)}
        self._ended |= ended
        return bool(ended)

    def begin(self, batch: Batch) -> Attempt:
        """Record an attempt at a claimed batch, with those of other slots; raises as `begin_attempt`."""
        recorded = Future[Attempt]()
        with self._lock:
            self._waiting.append((batch, recorded))
        with self._speaking:  # whose calls have deadlines; another slot may have recorded this one meanwhile
            with self._lock:
                group, self._waiting = self._waiting, []
            if group:
                self._record(group)
        return recorded.result()

    def _record(self, group: list[_Waiting]) -> None:
        """Record the attempts of a group; if PostgreSQL refuses them together, one by one, each with its own error."""
        try:
            attempts = begin_attempts(self._ledger, [batch for batch, _ in group], self._worker_id, self._ended)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            is_shared = isinstance(error, DatabaseUnavailable | DatabaseBusy)  # the next statement would meet the same
            if len(group) > 1 and isinstance(error, RowferryError) and not is_shared:
                for waiting in group:
                    self._record([waiting])
                return
            for _, recorded in group:
                recorded.set_exception(type(error)(str(error)) if is_shared else error)
        else:
            for (_, recorded), attempt in zip(group, attempts, strict=True):
                recorded.set_result(attempt)
