"""Pause and resume a migration, or one of its queues: a column that workers read at their next claim."""

from psycopg.rows import DictRow

from rowferry.db.connection import Connection, call, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import DatabaseBusy, UsageError

NO_REASON: DictRow = {"pause_reason": None, "paused_by_worker": False}


def pause(
    connection: Connection, migration: str | None, queue: str | None = None, reason: str | None = None
) -> list[DictRow]:
    """Pause one migration, or all if None, or one queue of theirs, and return a row for each.

    It has what the function of the database returns (`changed`: false if it was paused before), why it is paused
    (`pause_reason`, `paused_by_worker`), and the columns of `count_open_batches`.

    `reason`: why, for everybody who looks at it; one that is there already stays. Raises DatabaseBusy while another
    session locks the row, UsageError where there is no such queue.
    """
    return _set(connection, "pause", migration, queue, reason)


def resume(connection: Connection, migration: str | None, queue: str | None = None) -> list[DictRow]:
    """Resume one migration, or all if None, or one queue of theirs, and return the same rows, with why it was paused.

    Raises as `pause` does.
    """
    return _set(connection, "resume", migration, queue)


def find_pause(connection: Connection, migration: str) -> str | None:
    """Return `paused since ...` with the reason, without a full stop; None while the migration is not paused."""
    row = connection.execute(statement("find_migration"), {"name": migration}).fetchone()
    if row is None or row["paused_at"] is None:
        return None
    since = f"paused since {row['paused_at']:%Y-%m-%d %H:%M:%S %Z}"
    return f"{since}: {row['pause_reason'].rstrip('.')}" if row["pause_reason"] else since


def _set(
    connection: Connection, function: str, migration: str | None, queue: str | None, *reason: str | None
) -> list[DictRow]:
    try:
        with translated_errors():
            before = _read_reasons(connection, queue)  # a resume clears them
            rows = call(connection, function, migration, queue, *reason)
            if queue is not None and not rows:
                _refuse_queue(connection, function, migration, queue)
            reasons = before | _read_reasons(connection, queue)
            return [row | reasons.get(row["migration"], NO_REASON) | _count(connection, row, queue) for row in rows]
    except DatabaseBusy as error:
        row = "migration" if queue is None else "queue"
        message = f"Could not {function}: another session locks the {row}'s row; try again when it has ended."
        raise DatabaseBusy(message) from error


def _read_reasons(connection: Connection, queue: str | None) -> dict[str, DictRow]:
    """Return why migrations, or their queues of this name, are paused, by the names of the migrations."""
    found = connection.execute(statement("read_pause_reasons"), {"queue": queue}).fetchall()
    return {row.pop("name"): row for row in found}


def _count(connection: Connection, row: DictRow, queue: str | None) -> DictRow:
    return fetch_one(connection, statement("count_open_batches"), {"migration": row["migration"], "queue": queue})


def _refuse_queue(connection: Connection, function: str, migration: str | None, queue: str) -> None:
    """Raise UsageError unless there is such a queue, which is not paused, to resume."""
    found = connection.execute(statement("list_migration_queues"), {"migration": migration}).fetchall()
    names = [row["queue_name"] for row in found]
    if function == "resume" and queue in names:
        return
    where = "This database" if migration is None else f"Migration {migration}"
    known = f"it has {', '.join(names)}" if names else "nothing is enqueued there yet"
    raise UsageError(f"{where} has no queue {queue!r}; {known}.")
