"""Pause and resume a migration, or one of its queues: a column that workers read at their next claim."""

from psycopg.rows import DictRow

from rowferry.db.connection import Connection, call, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import DatabaseBusy, RowferryError
from rowferry_cli.status.chain import read_chain


def pause(
    connection: Connection, migration: str | None, queue: str | None = None, reason: str | None = None
) -> list[DictRow]:
    """Pause one migration, or all if None, or one queue of theirs, and return a row for each; none: no such queue.

    It has what the function of the database returns (`changed`: false if it was paused before), and how many batches
    are `open_batches`, `claimed` by live workers and `waiting`, and how many `workers` live.

    `reason`: why, for everybody who looks at it; one that is there already stays. Raises DatabaseBusy while another
    session locks the row.
    """
    return _set(connection, migration, queue, reason, is_paused=True)


def resume(connection: Connection, migration: str | None, queue: str | None = None) -> list[DictRow]:
    """Resume one migration, or all if None, or one queue of theirs, and return the same rows, with why it was paused.

    Raises as `pause` does.
    """
    return _set(connection, migration, queue, None, is_paused=False)


def find_pause(connection: Connection, migration: str) -> str | None:
    """Return `paused since ...` with the reason, without a full stop; None while the migration is not paused."""
    row = connection.execute(statement("find_migration"), {"name": migration}).fetchone()
    if row is None or row["paused_at"] is None:
        return None
    since = f"paused since {row['paused_at']:%Y-%m-%d %H:%M:%S %Z}"
    return f"{since}: {row['pause_reason'].rstrip('.')}" if row["pause_reason"] else since


def _set(
    connection: Connection, migration: str | None, queue: str | None, reason: str | None, *, is_paused: bool
) -> list[DictRow]:
    # A worker may have finished what is resumed by the time that it is read. A pause does not wait for a view.
    before = None if is_paused else read_chain(connection, migration)
    act = "pause" if is_paused else "resume"
    try:
        with translated_errors():
            rows = call(connection, "set_pause", is_paused, migration, queue, reason)
    except DatabaseBusy as error:
        row = "migration" if queue is None else "queue"
        message = f"Could not {act}: another session locks the {row}'s row; try again when it has ended."
        raise DatabaseBusy(message) from error
    try:
        with translated_errors():
            workers = fetch_one(connection, statement("count_live_workers"))
            queues = read_chain(connection, migration) if before is None else before
    except RowferryError as error:
        raise type(error)(f"It is {act}d; what is left could not be read: {error}") from error
    queues = [each for each in queues if queue in {None, each["queue"]}]
    for row in rows:
        mine = [each for each in queues if each["migration"] == row["migration"]]
        claimed, open_batches = (sum(each[name] for each in mine) for name in ("claimed", "batches_init"))
        row |= {"open_batches": open_batches, "claimed": claimed, "waiting": max(open_batches - claimed, 0), **workers}
    return rows
