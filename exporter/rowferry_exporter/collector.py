"""Serves scrapes from readings that are a few seconds old; a slow database delays a scrape by 8 seconds at most."""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rowferry.db.connection import Connection, connect, set_local, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import RowferryError
from rowferry_exporter.metrics import MOST, VIEWS, ViewRows, describe

_log = logging.getLogger(__name__)

MIN_AGE = timedelta(seconds=4)
"""A younger reading is served again."""
MIN_AGE_FACTOR = 20
"""... and one younger than so many times its own duration: a slow reading takes 5 % of a core, not all of it."""
SCRAPE_TIMEOUT = timedelta(seconds=8)
"""How long a scrape waits for a reading; Prometheus' own default is 10 seconds."""


@dataclass(frozen=True, slots=True)
class QueueReading:
    """The rows of all views, read in one transaction."""

    rows: ViewRows
    seconds: float
    """Duration of the queries."""
    read_at: float
    """When the queries ended, by time.monotonic()."""


def read_views(connection: Connection) -> QueueReading:
    """Return a reading; the connection is in autocommit."""
    began = time.monotonic()
    with connection.transaction():
        # It only reads, and gives up rather than hold a queue up.
        set_local(connection, transaction_read_only="on", statement_timeout="30s")
        rows = {name: connection.execute(statement(name), {"limit": MOST}).fetchall() for name in VIEWS}
    ended = time.monotonic()
    return QueueReading(rows, ended - began, ended)


class QueueCollector(Collector):
    """The gauges of the queue."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._lock = Lock()
        self._running: Future[QueueReading] | None = None
        self._latest: QueueReading | None = None
        self._is_unavailable = False

    def collect(self) -> Iterable[Metric]:
        """Return the gauges; `rowferry_exporter_up` 0 and nothing else when the database is unavailable or too slow."""
        reading = self.read()
        return describe(reading and reading.rows, reading.seconds if reading else 0)

    def is_ready(self) -> bool:
        """Return whether the database answers."""
        return self.read() is not None

    def read(self) -> QueueReading | None:
        """Return a fresh reading; None if the database fails or does not answer in time."""
        if self._latest is not None and is_fresh(self._latest, time.monotonic()):
            return self._latest
        try:
            reading = self._start_reading().result(SCRAPE_TIMEOUT.total_seconds())
        except TimeoutError:
            self._log_failure("no answer in time")
        except RowferryError as error:
            self._log_failure(str(error))
        else:
            self._is_unavailable = False
            return reading
        return None

    def close(self) -> None:
        """Wait for a running reading, then close the connection."""
        self._thread.shutdown(cancel_futures=True)
        self._disconnect()

    def _start_reading(self) -> Future[QueueReading]:
        """Return the running reading, which concurrent scrapes share."""
        with self._lock:
            if self._running is None or self._running.done():
                self._running = self._thread.submit(self._read)
            return self._running

    def _read(self) -> QueueReading:
        """Store the reading even if its scrape has timed out: the next scrape can use it."""
        try:
            with translated_errors():
                self._connection = self._connection or connect("exporter", autocommit=True)
                self._latest = read_views(self._connection)
        except BaseException:
            self._disconnect()
            raise
        return self._latest

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _log_failure(self, why: str) -> None:
        """Log the first of consecutive failures, not every scrape."""
        if not self._is_unavailable:
            _log.warning("the queue cannot be read", extra={"error": why})
        self._is_unavailable = True


def is_fresh(reading: QueueReading, now: float) -> bool:
    """Return whether a reading may be shown again at `now`, by time.monotonic()."""
    return now - reading.read_at < max(MIN_AGE.total_seconds(), MIN_AGE_FACTOR * reading.seconds)
