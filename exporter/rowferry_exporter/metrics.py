"""All metrics of the exporter. Tests compare the dashboards with this file."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.metrics_core import GaugeMetricFamily
from psycopg.rows import DictRow

from rowferry.batch import Outcome
from rowferry.db.connection import Connection, connect, translated_errors
from rowferry.db.statements import statement

MOST = 1_000
"""Of so many queues, and of so many migrations, there are metrics: of the unfinished, then of the newest."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of the views, read in one transaction."""

    queues: list[DictRow]
    """One row a migration and queue, MOST at most."""
    migrations: list[DictRow]
    hosts: list[DictRow]
    seconds: float
    """Duration of the queries."""
    read_at: float
    """When the queries ended, by time.monotonic()."""


class Reader:
    """Holds the connection; not thread-safe."""

    def __init__(self) -> None:
        # Opened by the first reading, and again after every failure.
        self._connection: Connection | None = None

    def read(self) -> Reading:
        """Return a reading. Raises DatabaseUnavailable, DatabaseBusy or UsageError."""
        try:
            with translated_errors():
                return _read(self._connect())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; another reading would open a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = connect("exporter", autocommit=True)
        return self._connection


def _read(connection: Connection) -> Reading:
    began = time.monotonic()
    names = ("exporter_queues", "exporter_migrations", "exporter_hosts")
    with connection.transaction():
        connection.execute(statement("exporter_transaction"))
        rows = (connection.execute(statement(name), {"limit": MOST}).fetchall() for name in names)
        queues, migrations, hosts = rows
    ended = time.monotonic()
    return Reading(queues, migrations, hosts, ended - began, ended)


STATUSES = {"INIT": "batches_init", "DONE": "batches_done", "ERROR": "batches_error"}


def describe(reading: Reading | None) -> Iterator[GaugeMetricFamily]:
    """Yield the gauges of a reading; for None, only that the database is unavailable."""
    up = GaugeMetricFamily("rowferry_exporter_up", "1 when the database answered, else 0.")
    up.add_metric([], 0.0 if reading is None else 1.0)
    yield up
    if reading is None:
        return
    took = GaugeMetricFamily("rowferry_exporter_read_seconds", "Duration of the last reading of the queue.")
    took.add_metric([], reading.seconds)
    yield took
    left_out = GaugeMetricFamily("rowferry_exporter_queues_left_out", f"Queues beyond the {MOST} that have metrics.")
    left_out.add_metric([], reading.queues[0]["total"] - len(reading.queues) if reading.queues else 0)
    yield left_out
    yield from _describe_entries(reading.queues)
    yield from _describe_queues(reading.queues)
    yield from _describe_migrations(reading.migrations)
    yield from _describe_hosts(reading.hosts)


def _gauge(name: str, text: str, *more: str) -> GaugeMetricFamily:
    """Return a gauge by migration and queue."""
    return GaugeMetricFamily(f"rowferry_queue_{name}", text, labels=["migration", "queue", *more])


def _describe_entries(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    outcomes = _gauge("outcomes", "Entries of finished work by outcome.", "outcome")
    entries = _gauge("entries", "Entries in all batches.")
    left = _gauge("entries_waiting", "Entries without an outcome yet.")
    rate = _gauge("entries_per_second", "Entries a second, last minute.")
    for row in rows:
        names = [row["migration"], row["queue_name"]]
        for outcome in Outcome:
            outcomes.add_metric([*names, str(outcome)], row[outcome])
        entries.add_metric(names, row["entries"])
        left.add_metric(names, row["waiting"])
        rate.add_metric(names, row["rate"])
    yield from (outcomes, entries, left, rate)


def _describe_queues(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    position = _gauge("position", "Its place in the order of the chain, from 1.")
    batches = _gauge("batches", "Batches by status.", "status")
    claimed = _gauge("claimed_batches", "Batches claimed by live workers.")
    most = _gauge("max_in_hand", "How many may be claimed at once; absent without a limit.")
    due = _gauge("oldest_due_seconds", "Seconds since the oldest due batch became due.")
    paused = _gauge("paused", "1 while the queue or its migration is paused.")
    end = _gauge(
        "estimated_end_timestamp_seconds", "When all entries of this queue and those before it are done, at this rate."
    )
    for row in rows:
        names = [row["migration"], row["queue_name"]]
        position.add_metric(names, row["position"])
        for status, column in STATUSES.items():
            batches.add_metric([*names, status], row[column])
        claimed.add_metric(names, row["claimed"])
        if row["max_in_hand"] is not None:
            most.add_metric(names, row["max_in_hand"])
        due.add_metric(names, row["due_seconds"])
        paused.add_metric(names, float(row["paused"]))
        if row["ends_at"] is not None:
            end.add_metric(names, row["ends_at"])
    yield from (position, batches, claimed, most, due, paused, end)


def _describe_migrations(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    labels = ["migration"]
    paused = GaugeMetricFamily("rowferry_migration_paused", "1 while a migration is paused.", labels=labels)
    done = GaugeMetricFamily("rowferry_migration_done", "1 once all batches of all queues are DONE.", labels=labels)
    end = GaugeMetricFamily(
        "rowferry_migration_estimated_end_timestamp_seconds",
        "When the last of its queues is done, at this rate; absent while one does not move.",
        labels=labels,
    )
    for row in rows:
        paused.add_metric([row["migration"]], float(row["paused"]))
        done.add_metric([row["migration"]], float(row["is_done"]))
        if row["ends_at"] is not None:
            end.add_metric([row["migration"]], row["ends_at"])
    yield from (paused, done, end)


def _describe_hosts(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    live = GaugeMetricFamily("rowferry_live_workers", "Live worker processes.", labels=["host"])
    lost = GaugeMetricFamily(
        "rowferry_lost_workers",
        "Worker processes lost within the last hour.",
        labels=["host"],
    )
    held = GaugeMetricFamily("rowferry_host_claimed_batches", "Batches claimed by live workers.", labels=["host"])
    for row in rows:
        live.add_metric([row["host"]], row["live"])
        lost.add_metric([row["host"]], row["lost"])
        held.add_metric([row["host"]], row["claimed_batches"])
    yield from (live, lost, held)
