"""Step 1 of 5: claim a batch; without one, find out whether any work is left."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import sample
from typing import Any

from psycopg.pq import TransactionStatus

from rowferry.batch import Batch
from rowferry.db.connection import Connection, compose_call, fetch_one, read_json
from rowferry.db.statements import statement
from rowferry.errors import UsageError, WorkLeft
from rowferry.formatting import count_batches
from rowferry.s3.retry import LONGEST

Line = tuple[int, str]
"""A queue of a migration: the id of that, and the name of the queue."""


def claim_batch(
    connection: Connection,
    queues: list[str],
    migrations: list[str] | None = None,
    passed_over: Sequence[int] = (),
    passed_over_queues: Sequence[Line] = (),
) -> Batch | None:
    """Lock the oldest due batch of these queues and return it; None when none is free.

    `migrations`: names to serve, None: all; `passed_over`: ids of migrations to skip, `passed_over_queues`: of single
    queues of theirs.

    This opens a transaction on `connection`, which is the lease: when it ends, the batch is free again. What is done
    from here on is done under the savepoint `work` (sql/queries/savepoints.sql). On a connection in autocommit, all of
    that is one round trip.
    """
    for names, skipped in group_queues(queues, passed_over_queues):
        with connection.pipeline():
            if connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE:
                connection.execute(statement("begin_claim"))
            claimed = connection.execute(compose_call("claim_batch", 3), (names, migrations, [*passed_over, *skipped]))
            connection.execute(statement("begin_work"))
        if row := claimed.fetchone():
            return _read_batch(row)
    return None


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
    """End the transaction of a claim in vain; the session keeps in mind where the waiting batches begin."""
    connection.commit()


def give_back(connection: Connection) -> None:
    """Roll back a claim: the batch is free again.

    What the session has found out of where the waiting batches begin outlives that, unless a statement has failed: an
    outage makes workers give back one batch after another.
    """
    if connection.info.transaction_status is not TransactionStatus.INTRANS:
        connection.rollback()
        return
    (row,) = connection.execute(statement("read_claim_starts")).fetchall()
    connection.rollback()
    connection.execute(statement("keep_claim_starts"), row)
    connection.commit()


def group_queues(queues: list[str], passed_over: Sequence[Line]) -> list[tuple[list[str], list[int]]]:
    """Return the queues to ask for at once, with the migrations to skip for them; several in a random order.

    Nearly always one group: all of them.
    """
    if not passed_over:
        return [(queues, [])]
    skipped: dict[str, list[int]] = {
        name: sorted(one for one, queue in passed_over if queue == name) for name in queues
    }
    groups: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in queues:
        groups[*skipped[name]].append(name)
    found = [(names, list(skips)) for skips, names in groups.items()]
    return sample(found, len(found))


def is_work_left(
    connection: Connection,
    queues: list[str],
    migrations: list[str] | None = None,
    passed_over: Sequence[int | Line] = (),
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
