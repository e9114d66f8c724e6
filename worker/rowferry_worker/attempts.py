"""Records attempts at batches before the work starts, where a crash cannot take them back."""

import time
from collections.abc import Collection, Mapping
from datetime import timedelta

from rowferry.batch import Attempt, Batch
from rowferry.errors import DatabaseUnavailable, PoolExhausted
from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring.kernel import has_ended

POOL_TIMEOUT = timedelta(seconds=1)
"""How long a slot that holds a batch waits for PgBouncer to give the ledger a connection: others wait for one too."""


def begin_attempt(ledger: Ledger, batch: Batch, worker_id: str, ended: Collection[str] = ()) -> Attempt:
    """Record an attempt at a claimed batch; `ended`: workers that are known to be dead.

    Raises DatabaseUnavailable when the ledger's connection is lost; PoolExhausted when PgBouncer has none for it: the
    claim holds a connection of the same pool, and must not wait long for another.
    """
    # An attempt that this worker never heard of must not stay open: it would count as a crash.
    if_lost = "lose_attempts", ([batch.id], worker_id)
    arguments = (batch.id, batch.requeues, worker_id, ledger.connected_for(), list(ended))
    within, began = POOL_TIMEOUT if ledger.is_pooled else None, time.monotonic()
    try:
        (row,) = ledger.call("begin_attempt", *arguments, if_lost=if_lost, within=within)
    except DatabaseUnavailable as error:
        if within is not None and time.monotonic() - began >= within.total_seconds() * 0.9:
            raise PoolExhausted(f"PgBouncer gave the ledger no connection within {POOL_TIMEOUT.seconds} s") from error
        raise
    history = (row["losses"], row["since_loss"], row["unclear_for"], row["silent_workers"])
    return Attempt(row["attempt_id"], row["number"], row["crashes"], *history, since_first=row["since_first"])


class AttemptRecorder:
    """Records the attempts of a worker's slots, and which other workers of its kernel have ended."""

    def __init__(self, ledger: Ledger, worker_id: str) -> None:
        """`ledger`: whose connection the slots of the process share."""
        self._ledger = ledger
        self._worker_id = worker_id
        self._ended: set[str] = set()
        """The workers of which the kernel has said that they have ended."""

    def note_ended(self, workers: Mapping[str, str]) -> bool:
        """Ask the kernel which of these workers have ended; return whether one has: the next attempt knows."""
        ended = {worker for worker, process in workers.items() if worker in self._ended or has_ended(process)}
        self._ended |= ended
        return bool(ended)

    def begin(self, batch: Batch) -> Attempt:
        """Record an attempt at a claimed batch; raises as `begin_attempt`."""
        return begin_attempt(self._ledger, batch, self._worker_id, self._ended)
