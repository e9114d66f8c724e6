"""Station 1 of 5: claim a batch and record the attempt."""

from rowferry.batch import Attempt, Batch
from rowferry.database import Connection, call, fetch_one
from rowferry.session import answered, begin_transaction
from rowferry.statements import statement
from rowferry_worker.ledger import Ledger


def claim_batch(connection: Connection, queues: list[str]) -> Batch | None:
    """Lock the oldest due batch of these queues and return it; None when none is free.

    The transaction that this opens on `connection` is the lease: whoever ends it gives the batch back.
    """
    with answered(connection):
        begin_transaction(connection)
        rows = call(connection, "claim_batch", queues)
    return Batch(**rows[0]) if rows else None


def begin_attempt(ledger: Ledger, batch: Batch, worker_id: str) -> Attempt:
    """Record an attempt at a claimed batch where a crash cannot take it back."""
    (row,) = ledger.call("begin_attempt", batch.id, batch.requeues, worker_id)
    return Attempt(row["attempt_id"], row["number"], row["crashes"])


def is_work_left(connection: Connection, queues: list[str]) -> bool:
    """Return whether any batch of these queues is still INIT: due later, or in other hands, counts as well."""
    return bool(fetch_one(connection, statement("work_left"), {"queues": queues})["work_left"])
