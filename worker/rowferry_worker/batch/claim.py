"""Station 1 of 5: claim a batch and record the attempt."""

import time
from collections.abc import Sequence
from datetime import timedelta

from rowferry.batch import Attempt, Batch
from rowferry.db.connection import Connection, call, fetch_one
from rowferry.db.statements import statement
from rowferry.db.timeouts import is_pooled
from rowferry.errors import DatabaseUnavailable, PoolExhausted
from rowferry_worker.batch.ledger import Ledger, Owed
from rowferry_worker.objects.retry import LONGEST

POOL_PATIENCE = timedelta(seconds=3)
"""How long a slot that holds a batch waits for PgBouncer to give the ledger a connection."""


def claim_batch(
    connection: Connection,
    queues: list[str],
    migrations: list[str] | None = None,
    passed_over: Sequence[int] = (),
) -> Batch | None:
    """Lock the oldest due batch of these queues and return it; None when none is free.

    `migrations`: the names of those to serve, None: all; `passed_over`: the ids of those to leave alone.

    The transaction that this opens on `connection` is the lease: whoever ends it gives the batch back.
    """
    rows = call(connection, "claim_batch", queues, migrations, list(passed_over))
    return Batch(**rows[0]) if rows else None


def begin_attempt(ledger: Ledger, batch: Batch, worker_id: str) -> Attempt:
    """Record an attempt at a claimed batch where a crash cannot take it back.

    Raises DatabaseUnavailable when the ledger's connection is lost, PoolExhausted when it is for want of one: the claim
    holds a connection of PgBouncer's pool, and must not wait for long for another.
    """
    if_lost = _forget([batch.id], worker_id)
    arguments = (batch.id, batch.requeues, worker_id, ledger.connected_for())
    within, began = POOL_PATIENCE if is_pooled() else None, time.monotonic()
    try:
        (row,) = ledger.call("begin_attempt", *arguments, if_lost=if_lost, within=within)
    except DatabaseUnavailable as error:
        if within is not None and time.monotonic() - began >= within.total_seconds() - 1:
            raise PoolExhausted(f"PgBouncer gave the ledger no connection within {POOL_PATIENCE.seconds} s") from error
        raise
    history = (row["losses"], row["since_loss"], row["unclear_for"])
    return Attempt(row["attempt_id"], row["number"], row["crashes"], *history)


def _forget(batch_ids: list[int], worker_id: str) -> Owed:
    """Return what is owed when no answer comes: no attempt may stay open of which this worker never heard.

    It would pass for a crash.
    """
    return "lose_attempts", (batch_ids, worker_id)


def is_work_left(
    connection: Connection,
    queues: list[str],
    migrations: list[str] | None = None,
    passed_over: Sequence[int] = (),
) -> bool:
    """Return whether a batch that `claim_batch` may return is still INIT: one in other hands counts as well.

    So does one that is due later, but not later than after any retry.
    """
    parameters = {"queues": queues, "migrations": migrations, "passed_over": list(passed_over), "horizon": LONGEST}
    return bool(fetch_one(connection, statement("work_left"), parameters)["work_left"])
