"""The heart of a worker process: says every few seconds, from a thread of its own, that the process lives."""

import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread

from rowferry import __version__
from rowferry.errors import RowferryError
from rowferry_worker.batch.ledger import Ledger
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.cluster import Fleet
from rowferry_worker.service import notify

_log = logging.getLogger(__name__)

BEAT_EVERY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Heart:
    """Beats into rowferry.worker, and for the watchdog of whoever started the worker, until it signs off."""

    ledger: Ledger
    worker_id: str
    slots: int
    parallel: int
    queues: list[str]
    is_steady: Callable[[], bool]
    """Whether the slots make progress; the watchdog hears nothing while they do not."""
    fleet: Fleet
    """What each beat brings back is noted there."""
    stopped: Event

    def start(self) -> Thread:
        """Introduce the worker and begin to beat. Raises DatabaseUnavailable, or UsageError, if that fails."""
        self._beat()
        notify("READY=1", "STATUS=working")
        thread = Thread(target=self._run, name="heart", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while not self.stopped.wait(BEAT_EVERY.total_seconds()):
            status = "working"
            try:
                self._beat()
            except RowferryError as error:
                _log.warning("no heartbeat", extra={"error": str(error)})
                status = f"waiting for the database: {error}"
            if self.is_steady():
                notify("WATCHDOG=1", f"STATUS={status}")

    def _beat(self) -> None:
        (heard,) = self.ledger.call(
            "heartbeat",
            self.worker_id,
            socket.gethostname(),
            os.getpid(),
            __version__,
            self.slots,
            self.parallel,
            self.queues,
        )
        self.fleet.size, self.fleet.replica_lag = heard["fleet_size"], heard["replica_lag"]
        metrics.last_beat.set_to_current_time()

    def deregister_worker(self) -> None:
        """Beat no more and say that the worker has stopped in good order, if the database still listens.

        What the ledger owes is settled with it. The connection may have been lost since the last beat: once more, then.
        """
        self.stopped.set()
        for last_try in (False, True):
            try:
                self.ledger.call("deregister_worker", self.worker_id)
                break
            except RowferryError as error:
                if last_try:
                    _log.warning("could not sign off", extra={"error": str(error)})
