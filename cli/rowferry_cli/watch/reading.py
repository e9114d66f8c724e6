"""Reads a snapshot from the database."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from rowferry.db.connection import Connection, call, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import DatabaseUnavailable, RowferryError, UsageError
from rowferry.reports.chain import read_chain
from rowferry.reports.coverage import read_coverage
from rowferry.reports.progress import Counts
from rowferry.reports.standby import describe_standby_wait
from rowferry.reports.state import MigrationState
from rowferry.reports.unusable import Unusable, find_unusable
from rowferry_cli.watch.pace import PaceHistory
from rowferry_cli.watch.snapshot import (
    NONE_LATER,
    Bounds,
    ClaimedBatch,
    FailedEntry,
    FinishedBatch,
    Reason,
    RetryLater,
    Snapshot,
    WatchedQueue,
    Worker,
)

STANDS = ("state", "time_left", "since", "cause", "what_to_do", "held_by", "need_somebody")


def read_snapshot(
    connection: Connection, migration: str, history: PaceHistory | None = None, *, failures_of: str | None = None
) -> Snapshot:
    """Return a snapshot. Raises DatabaseUnavailable, or UsageError when the migration does not exist any more.

    `history`: the rate as read so far; `failures_of`: the queue whose failed entries are listed, if any. All is read at
    one moment, in a transaction of its own: the connection is in autocommit.
    """
    with translated_errors(), connection.transaction():
        connection.execute(statement("watch_transaction"))
        row = connection.execute(statement("watch_migration"), {"migration": migration}).fetchone()
        if row is None:
            raise UsageError(f"Migration {migration} does not exist in the database any more.")
        names = {"id": row["id"], "migration": migration}
        history = history or PaceHistory(migration)
        history.read(connection, row["moment"])
        queues = tuple(_read_queues(connection, names, history))
        unusable = find_unusable(connection, migration)
        workers = tuple(_group_workers(connection.execute(statement("watch_workers")).fetchall(), unusable))
        return Snapshot(
            migration=row["name"],
            moment=row["moment"],
            stands=MigrationState(**{name: row[name] for name in STANDS}),
            queues=queues,
            workers=workers,
            migrations=tuple(row["migrations"]),
            lost=row["lost"],
            coverage=read_coverage(connection, migration),
            unusable=unusable,
            standby_wait=describe_standby_wait(connection),
            bounds=Bounds(
                row["max_rows_per_second"],
                row["max_replica_lag"],
                row["replica_lag"],
                tuple(row["buckets"]),
            ),
            failed_entries=_read_failures(connection, row["id"], failures_of) if failures_of else (),
        )


def requeue_errors(connection: Connection, migration: str, queue: str | None = None) -> int:
    """Put the batches in ERROR of the migration, or of one queue, back into the queue and return how many."""
    with translated_errors():
        return call(connection, "requeue", None, None, migration, queue)[0]["requeue"]


def _read_queues(connection: Connection, names: dict[str, Any], history: PaceHistory) -> Iterator[WatchedQueue]:
    tables: dict[str, dict[str, Counts]] = defaultdict(dict)
    started: dict[str, list[datetime]] = defaultdict(list)
    finished: dict[str, list[datetime]] = defaultdict(list)
    for row in connection.execute(statement("watch_tables"), names):
        queue, label = row.pop("queue_name"), row.pop("label")
        for times, moment in ((started, row.pop("started_at")), (finished, row.pop("finished_at"))):
            times[queue] += [moment] if moment else []
        tables[queue][label or "?"] = Counts(**row)
    reasons = [Reason(**row) for row in connection.execute(statement("watch_errors"), names)]
    later = {row.pop("queue"): RetryLater(**row) for row in connection.execute(statement("watch_delayed"), names)}
    rates = connection.execute(statement("watch_hosts"), names).fetchall()
    ended = [FinishedBatch(**row) for row in connection.execute(statement("watch_finished"), names)]
    for status in read_chain(connection, names["migration"]):
        name = status.queue
        started_at = min(started[name], default=None)
        yield WatchedQueue(
            status,
            tables[name],
            tuple(reason for reason in reasons if reason.queue == name),
            later.get(name, NONE_LATER),
            started_at=started_at,
            finished_at=max(finished[name], default=None),
            pace=history.list_rates(name, started_at),
            host_rates={row["host"]: row["rate"] for row in rates if row["queue"] == name},
            finished=tuple(batch for batch in ended if batch.queue == name),
        )


def _group_workers(rows: Sequence[dict[str, Any]], unusable: Sequence[Unusable]) -> Iterator[Worker]:
    for (worker_id, host, pid), held in groupby(rows, key=lambda row: (row["id"], row["host"], row["pid"])):
        mine = list(held)
        batches = [
            ClaimedBatch(row["batch_id"], row["migration"], row["claimed_for"], row["in_hand"], row["entry_count"])
            for row in mine
            if row["batch_id"]
        ]
        rates = mine[0]["request_rates"]
        skips = any(reason.names(pid, host) for reason in unusable)
        yield Worker(worker_id, host, pid, tuple(batches), mine[0]["silent_for"], rates, skips)


def _read_failures(connection: Connection, migration_id: int, queue: str) -> tuple[FailedEntry, ...] | str:
    """Return the failed entries of a queue, or why this role may not read them."""
    try:
        with translated_errors(), connection.transaction():
            rows = connection.execute(statement("watch_entries"), {"id": migration_id, "queue": queue}).fetchall()
    except DatabaseUnavailable:
        raise
    except RowferryError as error:
        return str(error)
    return tuple(FailedEntry(**row) for row in rows)
