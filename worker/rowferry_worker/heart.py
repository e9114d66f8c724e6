"""The heart of a worker process: says every few seconds, from a thread of its own, that the process lives."""

import logging
import os
import socket
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread

from rowferry import __version__
from rowferry.errors import RowferryError
from rowferry_worker.ledger import Ledger

_log = logging.getLogger(__name__)

BEAT_EVERY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Heart:
    """Beats into rowferry.worker until `stop`."""

    ledger: Ledger
    worker_id: str
    slots: int
    parallel: int
    queues: list[str]
    stopped: Event

    def start(self) -> Thread:
        """Introduce the worker and begin to beat. Raises DatabaseUnavailable, or UserMistake, if that fails."""
        self._beat()
        thread = Thread(target=self._run, name="heart", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while not self.stopped.wait(BEAT_EVERY.total_seconds()):
            try:
                self._beat()
            except RowferryError as error:
                _log.warning("no heartbeat", extra={"error": str(error)})

    def _beat(self) -> None:
        self.ledger.call(
            "beat",
            self.worker_id,
            socket.gethostname(),
            os.getpid(),
            __version__,
            self.slots,
            self.parallel,
            self.queues,
        )

    def sign_off(self) -> None:
        """Stop beating and say that the worker has stopped in good order, if the database still listens."""
        self.stopped.set()
        try:
            self.ledger.call("sign_off", self.worker_id)
        except RowferryError as error:
            _log.warning("could not sign off", extra={"error": str(error)})
