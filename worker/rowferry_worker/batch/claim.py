"""Step 1 of 5: claim a batch; without one, find out whether any work is left."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowferry.batch import Batch
from rowferry.db.connection import Connection, call, fetch_one
from rowferry.db.statements import statement
from rowferry.errors import UsageError, WorkLeft
from rowferry.formatting import count_batches
from rowferry.s3.retry import LONGEST


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


def is_work_left(
    connection: Connection,
    queues: list[str],
    migrations: list[str] | None = None,
    passed_over: Sequence[int] = (),
) -> bool:
    """Return whether a batch of these queues, or of one that leads to them, is still INIT, claimed or not.

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
    if row["paused_queues"]:
        return _describe_paused(name, row["paused_queues"], batches)
    left, first, them = ("is left", "it is", "it") if row["batches"] == 1 else ("are left", "the first is", "them")
    due = f"{first} due at {row['due_at']:%F %T %Z}" if row["due_at"] else f"run_after puts {them} off for ever"
    return f"{batches} of migration {name} {left}; {due}."


def _describe_paused(name: str, queues: Sequence[str], batches: str) -> str:
    """Return which queues of a running migration are paused."""
    which, are, do = ("Queue", "is", "") if len(queues) == 1 else ("Queues", "are", " for each")
    queue = queues[0] if len(queues) == 1 else "NAME"
    return (
        f"{which} {', '.join(queues)} of migration {name} {are} paused with {batches} left: "
        f"run `rowferry resume --queue {queue} --migration {name}`{do}."
    )
