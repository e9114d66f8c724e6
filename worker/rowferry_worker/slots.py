"""The slots of a process: started as batches are wanted, ended when they are not, never more than connections allow."""

import logging
import time
from datetime import timedelta
from threading import Lock, Thread

from rowferry_worker.slot import Slot
from rowferry_worker.state import WorkerState

_log = logging.getLogger(__name__)

POOLED_CONNECTIONS = 20
"""... behind PgBouncer no more than its pool has (`default_pool_size`), as long as nobody has changed that."""


def bound_slots(most: int, connections: int | None, workers: int, *, pooled: bool = False) -> int:
    """Return how many slots a worker may have, at least 1.

    `most`: the bound of a process; `connections`: those that all workers may take, None: unknown; `workers`: the live
    processes, which share them; `pooled`: PgBouncer stands before it. Each worker's ledger takes one connection.
    """
    if connections is None:
        return most
    share = min(connections, POOLED_CONNECTIONS) if pooled else connections
    return max(1, min(most, share // max(1, workers) - 1))


class Slots:
    """Starts and ends the slots of a process. There is always one, which looks for work."""

    def __init__(self, state: WorkerState) -> None:
        self._state = state
        self._running: dict[Slot, Thread] = {}
        self._lock = Lock()
        self._start_none_before = 0.0
        self._has_ended = False

    def start(self) -> None:
        """Start the first slot."""
        with self._lock:
            self._start()

    def start_if_wanted(self) -> None:
        """Start another slot if none is free to claim the next batch, and connections allow it."""
        if self._state.turns.is_taken or self._state.stopping.is_set():
            return
        with self._lock:
            is_allowed = 0 < len(self._running) < self._bound() and time.monotonic() >= self._start_none_before
            if is_allowed and not self._has_ended:
                self._start()

    def are_running(self) -> bool:
        """Return whether a slot is left."""
        with self._lock:
            return bool(self._running)

    def abandon(self) -> None:
        """Release the batches of all slots that have not ended; see Slot.abandon."""
        for slot in list(self._running):
            slot.abandon()

    def may_end(self, slot: Slot, *, pause: timedelta | None = None) -> bool:
        """Return whether a slot is no longer needed, and count it out: another one goes on.

        `pause`: start no slot for so long, since there was no connection for this one.
        """
        with self._lock:
            if len(self._running) <= 1:
                return False
            if pause is not None:
                self._start_none_before = time.monotonic() + pause.total_seconds()
            del self._running[slot]
            return True

    def are_too_many(self) -> bool:
        """Return whether there are more slots than connections allow by now: other workers have come."""
        return len(self._running) > self._bound()

    def note_connected(self) -> None:
        """Note that the database can be reached again: more slots may start."""
        with self._lock:
            self._start_none_before = 0.0

    def note_end(self, slot: Slot) -> None:
        """Note that a slot has ended for good, with the work or by an error; no more start."""
        with self._lock:
            self._has_ended = True
            self._running.pop(slot, None)

    def _bound(self) -> int:
        cluster, pooled = self._state.cluster, self._state.ledger.is_pooled
        return bound_slots(self._state.options.max_batches, cluster.connections, cluster.size, pooled=pooled)

    def _start(self) -> None:
        slot = Slot(self._state, self)
        thread = Thread(target=slot.run, name="slot", daemon=True)
        self._running[slot] = thread
        try:
            thread.start()
        except RuntimeError as error:  # the system has no thread left
            del self._running[slot]
            if not self._running:
                raise
            _log.warning("no thread for another slot", extra={"error": str(error)})
