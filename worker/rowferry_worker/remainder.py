"""What a worker that stops when its queues are empty does not wait for: paused, unusable, or due much later."""

from collections.abc import Mapping
from typing import Any

from rowferry.db.connection import Connection
from rowferry.db.statements import statement
from rowferry.errors import UsageError, WorkLeft
from rowferry.formatting import count_batches
from rowferry_worker.batch.claim import is_work_left
from rowferry_worker.state import Shared


def is_empty(connection: Connection, shared: Shared) -> bool:
    """Return whether the worker need not wait for anything in its queues.

    Raises UsageError where what is left cannot be worked on here, WorkLeft where it is paused or due much later.
    """
    unusable = shared.backoff.unusable()
    if is_work_left(connection, shared.queues, shared.migrations, list(unusable)):
        return False
    parameters = {"queues": shared.queues, "migrations": shared.migrations}
    left = connection.execute(statement("deferred_work"), parameters).fetchall()
    connection.rollback()
    for row in left:
        if mistake := unusable.get(row["migration_id"]):
            raise UsageError(f"Migration {row['migration']} cannot be worked on here: {mistake}")
    if left:
        raise WorkLeft(" ".join(_describe(row) for row in left))
    return True


def _describe(row: Mapping[str, Any]) -> str:
    batches = count_batches(row["batches"])
    if row["paused_at"] is None:
        is_one = row["batches"] == 1
        left, first, them = ("is left", "it is", "it") if is_one else ("are left", "the first is", "them")
        due = f"{first} due at {row['due_at']:%F %T %Z}" if row["due_at"] else f"run_after puts {them} off for ever"
        return f"{batches} of migration {row['migration']} {left}; {due}."
    reason = f" ({row['pause_reason'].rstrip('.')})" if row["pause_reason"] else ""
    words = f"Migration {row['migration']} is paused{reason} with {batches} left"
    return f"{words}: run `rowferry resume {row['migration']}`."
