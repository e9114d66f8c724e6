"""Heartbeat thread: marks this worker alive every 5 s, and tells how far its batches are once a second."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Thread

from psycopg.types.json import Jsonb

from rowferry import __version__
from rowferry.errors import RowferryError
from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.kernel import describe_process
from rowferry_worker.service import name_host, notify

_log = logging.getLogger(__name__)

HEARTBEAT_INTERVAL = timedelta(seconds=5)
REPORT_INTERVAL = timedelta(seconds=1)
"""How often the worker tells how far its batches are, while that changes: one small UPDATE."""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What a worker process is doing."""

    batches: int
    """Claimed ones."""
    in_flight_limit: int
    """Objects that may be in flight."""
    request_rates: Mapping[str, float] = field(default_factory=dict[str, float])
    """Requests a second that it gets through where a server refuses more, by endpoint, bucket and operation."""


@dataclass(frozen=True, slots=True)
class FleetRate:
    """Requests a second that the live workers get through together where a server refuses more."""

    per_second: float
    workers: int
    """How many of them it holds back."""


@dataclass(slots=True)
class ClusterState:
    """The live workers, what servers let through to them, and replica lag, as of the last heartbeat."""

    size: int = 1
    """Live worker processes, this one included."""
    replica_lag: timedelta | None = None
    """Of the slowest streaming replica; None: there is none, or it is not behind."""
    connections: int | None = None
    """How many all workers may take together; None: not known yet."""
    fleet_rates: dict[str, FleetRate] = field(default_factory=dict[str, FleetRate])
    """By endpoint, bucket and operation; only what a server holds back."""

    def share_of(self, per_second: float) -> float:
        """Return this worker's even share of a bound for the whole cluster."""
        return per_second / max(1, self.size)

    def is_behind(self, max_lag_seconds: float | None) -> bool:
        """Return whether a replica is further behind than allowed."""
        if max_lag_seconds is None or self.replica_lag is None:
            return False
        return self.replica_lag.total_seconds() > max_lag_seconds


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Registers the worker in rowferry.worker, and feeds systemd's watchdog while the slots make progress."""

    ledger: Ledger
    worker_id: str
    queues: list[str]
    report: Callable[[], WorkerReport]
    is_progressing: Callable[[], bool]
    cluster: ClusterState
    """Updated by each heartbeat."""
    stopped: Event
    in_hand: Callable[[], Mapping[int, int]] = dict
    """The entries that are settled so far in each claimed batch, by attempt."""

    def start(self) -> Thread:
        """Register the worker and start the thread. Raises DatabaseUnavailable or UsageError if that fails."""
        self.send()
        notify("READY=1", "STATUS=working")
        thread = Thread(target=self._run, name="heartbeat", daemon=True)
        thread.start()
        return thread

    def send(self) -> None:
        """Mark the worker alive and update `cluster`."""
        report = self.report()
        (row,) = self.ledger.call(
            "heartbeat",
            self.worker_id,
            name_host(),
            os.getpid(),
            __version__,
            report.batches,
            report.in_flight_limit,
            self.queues,
            Jsonb(report.request_rates),
            describe_process(os.getpid()),
            self.ledger.waits_for,
        )
        cluster = self.cluster
        cluster.size, cluster.replica_lag = row["live_workers"], row["replica_lag"]
        cluster.connections = row["connections"]
        cluster.fleet_rates = {key: FleetRate(**rate) for key, rate in row["fleet_rates"].items()}
        metrics.last_heartbeat.set_to_current_time()

    def report_progress(self, told: Mapping[int, int]) -> Mapping[int, int]:
        """Tell how far the claimed batches are, unless that was `told` before; return what is told by now.

        Raises DatabaseUnavailable when the connection is lost.
        """
        now = self.in_hand()
        if now != told:
            self.ledger.call("update_worker", self.worker_id, Jsonb({"in_hand": dict(now)}))
        return now

    def _run(self) -> None:
        told: Mapping[int, int] = {}
        beat_at = time.monotonic() + HEARTBEAT_INTERVAL.total_seconds()
        while not self.stopped.wait(min(REPORT_INTERVAL, HEARTBEAT_INTERVAL).total_seconds()):
            with suppress(RowferryError):  # the heartbeat says it
                told = self.report_progress(told)
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + HEARTBEAT_INTERVAL.total_seconds()
                self._beat()

    def _beat(self) -> None:
        """Send a heartbeat, and tell the service manager of it."""
        status = "working"
        try:
            self.send()
        except RowferryError as error:
            _log.warning("heartbeat failed", extra={"error": str(error)})
            status = f"waiting for the database: {error}"
        if self.is_progressing():
            notify("WATCHDOG=1", f"STATUS={status}")

    def deregister(self) -> None:
        """Stop the heartbeat and record an orderly stop if the database can be reached; this flushes the ledger.

        Tried twice: the connection may have been lost since the last heartbeat.
        """
        self.stopped.set()
        for is_last in (False, True):
            try:
                self.ledger.call("update_worker", self.worker_id, Jsonb({"stopped": True}))
                break
            except RowferryError as error:
                if is_last:
                    _log.warning("could not deregister the worker", extra={"error": str(error)})
