"""Step 1 of 5: claim a batch and record the attempt; without one, find out whether any work is left."""

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from rowferry.batch import Attempt, Batch
from rowferry.db.connection import Connection, call, fetch_one
from rowferry.db.statements import statement
from rowferry.errors import DatabaseUnavailable, PoolExhausted, UsageError, WorkLeft
from rowferry.formatting import count_batches
from rowferry.s3.retry import LONGEST
from rowferry_worker.ledger import Ledger

POOL_TIMEOUT = timedelta(seconds=3)
"""How long a slot that holds a batch waits for PgBouncer to give the ledger a connection."""


def claim_batch(
    connection: Connection,
    queues: list[str],
    migrations: list[str] | None = None,
    passed_over: Sequence[int] = (),
) -> Batch | None:
    """Lock the oldest due batch of these queues and return it; None when none is free.

    `migrations`: names to serve, None: all; `passed_over`: ids of migrations to skip.

    This opens a transaction on `connection`, which is the lease: when it ends, the batch is free again.
    """
    rows = call(connection, "claim_batch", queues, migrations, list(passed_over))
    return Batch(**rows[0]) if rows else None


def begin_attempt(ledger: Ledger, batch: Batch, worker_id: str) -> Attempt:
    """Record an attempt at a claimed batch where a crash cannot take it back.

    Raises DatabaseUnavailable when the ledger's connection is lost; PoolExhausted when PgBouncer has none for it: the
    claim holds a connection of the same pool, and must not wait long for another.
    """
    # An attempt that this worker never heard of must not stay open: it would count as a crash.
    if_lost = "lose_attempts", ([batch.id], worker_id)
    arguments = (batch.id, batch.requeues, worker_id, ledger.connected_for())
    within, began = POOL_TIMEOUT if ledger.is_pooled else None, time.monotonic()
    try:
        (row,) = ledger.call("begin_attempt", *arguments, if_lost=if_lost, within=within)
    except DatabaseUnavailable as error:
        if within is not None and time.monotonic() - began >= within.total_seconds() - 1:
            raise PoolExhausted(f"PgBouncer gave the ledger no connection within {POOL_TIMEOUT.seconds} s") from error
        raise
    history = (row["losses"], row["since_loss"], row["unclear_for"])
    return Attempt(row["attempt_id"], row["number"], row["crashes"], *history)


def is_work_left(
    connection: Connection,
    queues: list[str],
    migrations: list[str] | None = None,
    passed_over: Sequence[int] = (),
) -> bool:
    """Return whether a batch that `claim_batch` may return is still INIT, claimed by another slot or not.

    A batch that is due later counts if a retry could have put it off for as long.
    """
    parameters = {"queues": queues, "migrations": migrations, "passed_over": list(passed_over), "horizon": LONGEST}
    return bool(fetch_one(connection, statement("work_left"), parameters)["work_left"])


def is_finished(
    connection: Connection, queues: list[str], migrations: list[str] | None, unusable: Mapping[int, UsageError]
) -> bool:
    """Return whether a worker that stops when its queues are empty has nothing to wait for.

    `unusable`: why migrations cannot be used on this host, by id. Raises UsageError where one of them has batches left,
    WorkLeft where batches are paused or due much later.
    """
    if is_work_left(connection, queues, migrations, list(unusable)):
        return False
    parameters = {"queues": queues, "migrations": migrations}
    left = connection.execute(statement("deferred_work"), parameters).fetchall()
    connection.rollback()
    for row in left:
        if error := unusable.get(row["migration_id"]):
            raise UsageError(f"Migration {row['migration']} cannot be worked on here: {error}")
    if left:
        raise WorkLeft(" ".join(_describe_left(row) for row in left))
    return True


def _describe_left(row: Mapping[str, Any]) -> str:
    name, batches = row["migration"], count_batches(row["batches"])
    if row["paused_at"] is not None:
        reason = f" ({row['pause_reason'].rstrip('.')})" if row["pause_reason"] else ""
        return f"Migration {name} is paused{reason} with {batches} left: run `rowferry resume --migration {name}`."
    left, first, them = ("is left", "it is", "it") if row["batches"] == 1 else ("are left", "the first is", "them")
    due = f"{first} due at {row['due_at']:%F %T %Z}" if row["due_at"] else f"run_after puts {them} off for ever"
    return f"{batches} of migration {name} {left}; {due}."
