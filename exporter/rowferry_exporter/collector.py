"""Answers scrapes from readings that are a few seconds old, and never makes one wait for the database for long."""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Lock

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rowferry.errors import RowferryError
from rowferry_exporter.metrics import Reader, Reading, describe

_log = logging.getLogger(__name__)

KEEP = timedelta(seconds=4)
"""How long a reading is good for at least."""
KEEP_TIMES = 20
"""... and this many times what it took: counting a queue of a million batches takes 5 % of a core, not all of it."""
PATIENCE = timedelta(seconds=8)
"""How long a scrape waits; Prometheus gives up after 10 seconds unless told otherwise."""


class QueueCollector(Collector):
    """The gauges of the queue."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._reader = Reader()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._turn = Lock()
        self._under_way: Future[Reading] | None = None
        self._latest: Reading | None = None
        self._away = False

    def collect(self) -> Iterable[Metric]:
        """Return the gauges; `rowferry_exporter_up` 0 and nothing else when the database is away or too slow."""
        return describe(self.read())

    def is_ready(self) -> bool:
        """Return whether the database answers."""
        return self.read() is not None

    def read(self) -> Reading | None:
        """Return a reading that is fresh enough; None when none is to be had in time."""
        if self._latest is not None and is_fresh(self._latest, time.monotonic()):
            return self._latest
        try:
            reading = self._ask().result(PATIENCE.total_seconds())
        except TimeoutError:
            self._note_absence("no answer in time")
        except RowferryError as error:
            self._note_absence(str(error))
        else:
            self._away = False
            return reading
        return None

    def close(self) -> None:
        """Wait for the reading that is under way, and close the connection."""
        self._thread.shutdown(cancel_futures=True)
        self._reader.close()

    def _ask(self) -> Future[Reading]:
        """Return the reading that is under way, for all who ask meanwhile."""
        with self._turn:
            if self._under_way is None or self._under_way.done():
                self._under_way = self._thread.submit(self._read)
            return self._under_way

    def _read(self) -> Reading:
        """Keep what was read, even when those who asked have given up: the next scrape is glad of it."""
        self._latest = self._reader.read()
        return self._latest

    def _note_absence(self, why: str) -> None:
        """Say once that the database is away, not at every scrape."""
        if not self._away:
            _log.warning("the queue cannot be read", extra={"error": why})
        self._away = True


def is_fresh(reading: Reading, now: float) -> bool:
    """Return whether a reading may be shown again at `now`, by time.monotonic()."""
    return now - reading.read_at < max(KEEP.total_seconds(), KEEP_TIMES * reading.seconds)
