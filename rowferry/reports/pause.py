"""Pause and resume a migration, or one of its queues: a column that workers read at their next claim."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rowferry.db.connection import Connection, call, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import DatabaseBusy, UsageError

NO_REASON: dict[str, Any] = {"pause_reason": None, "paused_by_worker": False}


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """A migration, or one of its queues, after it was paused or resumed."""

    migration: str
    changed: bool
    """False if it was paused, or running, before."""
    paused_at: datetime | None
    """When it was paused; also after a resume; None if it was not paused."""
    open_batches: int
    """Batches in INIT, claimed ones included."""
    claimed: int
    pause_reason: str | None
    """Why it was paused; also after a resume; None if no reason was given."""
    paused_by_worker: bool
    """Whether workers paused it; also after a resume."""
    workers: int
    """Live workers of all migrations."""

    @property
    def waiting(self) -> int:
        """Return the open batches that no worker has claimed."""
        return max(0, self.open_batches - self.claimed)


def pause(
    connection: Connection, migration: str | None, queue: str | None = None, reason: str | None = None
) -> list[MigrationStatus]:
    """Pause one migration, or all if None, or one queue of theirs, and return their status.

    `reason`: why, for everybody who looks at it; one that is there already stays. Raises DatabaseBusy while another
    session locks the row, UsageError where there is no such queue.
    """
    if queue is None:
        return _set(connection, "pause", migration, None, reason)
    return _set_queue(connection, "pause", migration, queue, reason)


def resume(connection: Connection, migration: str | None, queue: str | None = None) -> list[MigrationStatus]:
    """Resume one migration, or all if None, or one queue of theirs, and return their status. Raises as `pause` does."""
    if queue is None:
        return _set(connection, "resume", migration)
    return _set_queue(connection, "resume", migration, queue)


def find_pause(connection: Connection, migration: str) -> str | None:
    """Return `paused since ...` with the reason, without a full stop; None while the migration is not paused."""
    row = connection.execute(statement("find_migration"), {"name": migration}).fetchone()
    if row is None or row["paused_at"] is None:
        return None
    since = f"paused since {row['paused_at']:%Y-%m-%d %H:%M:%S %Z}"
    return f"{since}: {row['pause_reason'].rstrip('.')}" if row["pause_reason"] else since


def _set(connection: Connection, function: str, migration: str | None, *others: str | None) -> list[MigrationStatus]:
    try:
        with translated_errors():
            before = _read_reasons(connection)  # a resume clears them
            rows = call(connection, function, migration, *others)
            reasons = before | _read_reasons(connection)
            return [_read_status(connection, row, **reasons.get(row["migration"], NO_REASON)) for row in rows]
    except DatabaseBusy as error:
        message = f"Could not {function}: another session locks the migration's row; try again when it has ended."
        raise DatabaseBusy(message) from error


def _read_reasons(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return why migrations are paused, by their names."""
    found = connection.execute(statement("read_pause_reasons")).fetchall()
    return {row.pop("name"): row for row in found}


def _set_queue(
    connection: Connection, function: str, migration: str | None, queue: str, *reason: str | None
) -> list[MigrationStatus]:
    try:
        with translated_errors():
            rows = call(connection, function, migration, queue, *reason)
            if not rows:
                _refuse_queue(connection, function, migration, queue)
            given = NO_REASON | {"pause_reason": next(iter(reason), None)}
            return [_read_status(connection, row, queue, **given) for row in rows]
    except DatabaseBusy as error:
        message = f"Could not {function}: another session locks the queue's row; try again when it has ended."
        raise DatabaseBusy(message) from error


def _refuse_queue(connection: Connection, function: str, migration: str | None, queue: str) -> None:
    """Raise UsageError unless there is such a queue, which is not paused, to resume."""
    found = connection.execute(statement("list_migration_queues"), {"migration": migration}).fetchall()
    names = [row["queue_name"] for row in found]
    if function == "resume" and queue in names:
        return
    where = "This database" if migration is None else f"Migration {migration}"
    known = f"it has {', '.join(names)}" if names else "nothing is enqueued there yet"
    raise UsageError(f"{where} has no queue {queue!r}; {known}.")


def _read_status(
    connection: Connection, row: dict[str, Any], queue: str | None = None, **reason: Any
) -> MigrationStatus:
    """Return the status of a row of a function; `reason`: a row of read_pause_reasons."""
    chosen = {"migration": row["migration"], "queue": queue}
    counts = fetch_one(connection, statement("count_open_batches"), chosen)
    return MigrationStatus(**row, **reason, **counts)
