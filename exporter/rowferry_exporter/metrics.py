"""All metrics of the exporter. Tests compare the dashboards with this file."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.metrics_core import GaugeMetricFamily
from psycopg.rows import DictRow

from rowferry.batch import Outcome
from rowferry.db.connection import Connection, connect, translated_errors
from rowferry.db.statements import statement


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of the views, read in one transaction."""

    progress: list[DictRow]
    """One row a migration and queue."""
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
    names = ("exporter_progress", "exporter_migrations", "exporter_hosts")
    with connection.transaction():
        connection.execute(statement("exporter_transaction"))
        progress, migrations, hosts = (connection.execute(statement(name)).fetchall() for name in names)
    ended = time.monotonic()
    return Reading(progress, migrations, hosts, ended - began, ended)


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
    yield from _describe_queues(reading.progress)
    yield from _describe_migrations(reading.migrations)
    yield from _describe_hosts(reading.hosts)


def _describe_queues(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    labels = ["migration", "queue"]
    batches = GaugeMetricFamily("rowferry_queue_batches", "Batches by status.", labels=[*labels, "status"])
    outcomes = GaugeMetricFamily(
        "rowferry_queue_outcomes", "Entries of finished work by outcome.", labels=[*labels, "outcome"]
    )
    entries = GaugeMetricFamily("rowferry_queue_entries", "Entries in all batches.", labels=labels)
    left = GaugeMetricFamily("rowferry_queue_entries_waiting", "Entries without an outcome yet.", labels=labels)
    rate = GaugeMetricFamily("rowferry_queue_entries_per_second", "Entries a second, last minute.", labels=labels)
    end = GaugeMetricFamily(
        "rowferry_queue_estimated_end_timestamp_seconds", "When all entries are done at this rate.", labels=labels
    )
    for row in rows:
        names = [row["migration"], row["queue_name"]]
        for status, column in STATUSES.items():
            batches.add_metric([*names, status], row[column])
        for outcome in Outcome:
            outcomes.add_metric([*names, str(outcome)], row[outcome])
        entries.add_metric(names, row["entries"])
        left.add_metric(names, row["waiting"])
        rate.add_metric(names, row["rate"])
        if row["ends_at"] is not None:
            end.add_metric(names, row["ends_at"])
    yield from (batches, outcomes, entries, left, rate, end)


def _describe_migrations(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    due = GaugeMetricFamily(
        "rowferry_queue_oldest_due_seconds", "Seconds since the oldest due batch became due.", labels=["migration"]
    )
    paused = GaugeMetricFamily("rowferry_migration_paused", "1 while a migration is paused.", labels=["migration"])
    for row in rows:
        due.add_metric([row["migration"]], row["due_seconds"])
        paused.add_metric([row["migration"]], float(row["paused"]))
    yield from (due, paused)


def _describe_hosts(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    live = GaugeMetricFamily("rowferry_live_workers", "Live worker processes.", labels=["host"])
    lost = GaugeMetricFamily(
        "rowferry_lost_workers",
        "Worker processes lost within the last hour.",
        labels=["host"],
    )
    held = GaugeMetricFamily("rowferry_queue_claimed_batches", "Batches claimed by live workers.", labels=["host"])
    for row in rows:
        live.add_metric([row["host"]], row["live"])
        lost.add_metric([row["host"]], row["lost"])
        held.add_metric([row["host"]], row["claimed_batches"])
    yield from (live, lost, held)
