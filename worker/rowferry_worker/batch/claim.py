"""Step 1 of 5: claim a batch; without one, find out whether any work is left."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from psycopg.pq import TransactionStatus

from rowferry.batch import Batch
from rowferry.db.connection import Connection, compose_call, fetch_one, read_json
from rowferry.db.statements import statement
from rowferry.errors import UsageError, WorkLeft
from rowferry.formatting import count_batches
from rowferry.s3.retry import LONGEST
from rowferry_worker.waiting_lines import Line, WaitingLine, WaitingLines


def claim_batch(
    connection: Connection,
    queues: list[str],
    migrations: Collection[str] | None = None,
    passed_over: Collection[int | Line] = (),
    lines: WaitingLines | None = None,
) -> Batch | None:
    """Lock the oldest due batch of one of these queues and return it; None when none is free.

    `migrations`: names to serve, None: all; `passed_over`: migrations to skip, by id, and single queues of others.
    `lines`: what this process knows of the waiting batches, None: nothing.

    This opens a transaction on `connection`, which is the lease: when it ends, the batch is free again. What is done
    from here on is done under the savepoint `work` (sql/queries/savepoints.sql). On a connection in autocommit, all of
    that is one round trip.
    """
    lines = WaitingLines() if lines is None else lines
    has_looked = not lines.is_known()
    if has_looked:
        _look(connection, queues, lines)
    while True:
        for asked in lines.choose(migrations, passed_over):
            if batch := _claim_of(connection, asked, lines):
                return batch
        if has_looked or not lines.may_look_again():
            return None
        has_looked = True
        if not _look(connection, queues, lines):
            return None


def _look(connection: Connection, queues: list[str], lines: WaitingLines) -> bool:
    """Find out where the waiting batches begin; return whether that is elsewhere than was known."""
    return lines.note_look(connection.execute(statement("look"), {"queues": queues}).fetchall())


def _claim_of(connection: Connection, asked: Sequence[WaitingLine], lines: WaitingLines) -> Batch | None:
    """Claim a batch of the first of these lines that has one to give."""
    places = [(line.migration_id, line.queue_name, line.since, line.since_id) for line in asked]
    with connection.pipeline():
        if connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE:
            connection.execute(statement("begin_claim"))
        claimed = connection.execute(
            compose_call("claim_batch", 4), [list(column) for column in zip(*places, strict=True)]
        )
        connection.execute(statement("begin_work"))
    row = claimed.fetchone()
    if row is None:
        return None
    lines.note_claim((row["migration_id"], row["queue_name"]), row.pop("since"), row["id"])
    return _read_batch(row)


def _read_batch(row: dict[str, Any]) -> Batch:
    """Return a claimed batch, also where its payload cannot be read: that is a fault of its own, and of no worker."""
    payload: dict[str, Any] = {}
    fault: Exception | None = None
    try:
        payload = read_json(row["payload"])
    except Exception as error:  # noqa: BLE001 - whatever it is: it is held against the batch
        fault = error
    known: dict[str, Any] = {**row, "payload": payload, "fault": fault}
    return Batch(**known)


def end_poll(connection: Connection) -> None:
    """End the transaction of a claim in vain."""
    connection.commit()


def is_work_left(
    connection: Connection,
    queues: list[str],
    migrations: list[str] | None = None,
    passed_over: Collection[int | Line] = (),
) -> bool:
    """Return whether a batch of these queues, or of one that leads to them, is still INIT, claimed or not.

    A batch that is due later counts if a retry could have put it off for as long. `passed_over`: migrations, and single
    queues of others, that do not count.
    """
    lines = [known for known in passed_over if not isinstance(known, int)]
    parameters = {
        "queues": queues,
        "migrations": migrations,
        "passed_over": [known for known in passed_over if isinstance(known, int)],
        "skipped_migrations": [migration_id for migration_id, _ in lines],
        "skipped_queues": [queue for _, queue in lines],
        "horizon": LONGEST,
    }
    return bool(fetch_one(connection, statement("work_left"), parameters)["work_left"])


def is_finished(
    connection: Connection, queues: list[str], migrations: list[str] | None, unusable: Mapping[int | Line, UsageError]
) -> bool:
    """Return whether a worker that stops when its queues are empty has nothing to wait for.

    `unusable`: why migrations, by id, or queues of others cannot be used on this host. Raises UsageError where one of
    them has batches left, WorkLeft where batches are paused or due much later.
    """
    if is_work_left(connection, queues, migrations, list(unusable)):
        return False
    parameters = {"queues": queues, "migrations": migrations}
    left = connection.execute(statement("deferred_work"), parameters).fetchall()
    end_poll(connection)
    why = {known if isinstance(known, int) else known[0]: error for known, error in unusable.items()}
    for row in left:
        if error := why.get(row["migration_id"]):
            raise UsageError(f"Migration {row['migration']} cannot be worked on here: {error}")
    if left:
        raise WorkLeft(" ".join(_describe_left(row) for row in left))
    return True


def _describe_left(row: Mapping[str, Any]) -> str:
    are = "is" if row["batches_init"] == 1 else "are"
    batches = f"{count_batches(row['batches_init'])} of {row['queue_name']} of {row['migration']} {are} left"
    if row["paused_at"] is not None:
        reason = f" ({row['pause_reason'].rstrip('.')})" if row["pause_reason"] else ""
        queue = "" if row["is_paused_whole"] else f" --queue {row['queue_name']}"
        return f"{batches} and paused{reason}: run `rowferry resume{queue} --migration {row['migration']}`."
    due = f"due at {row['next_at']:%F %T %Z}" if row["next_at"] else "put off for ever by run_after"
    return f"{batches}, {due}."
