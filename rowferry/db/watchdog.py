"""One thread that ends what has waited too long, even when the event loop itself is held up."""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

SCAN_EVERY = timedelta(seconds=0.25)
"""How coarse deadlines are: a request may outlive its own by this much."""


class Watched(Protocol):
    """Something with deadlines of its own."""

    def cancel_overdue(self, now: float) -> None:
        """Cancel what is past its deadline at `now` (`time.monotonic()`). Must neither block nor raise."""
        ...


class DeadlineWatch:
    """Calls `cancel_overdue` of all that it watches, several times a second, on one daemon thread."""

    def __init__(self) -> None:
        """Start the thread; it sleeps until something is watched or to be run."""
        self._watched: tuple[Watched, ...] = ()
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="rowferry-deadlines", daemon=True).start()

    def add(self, watched: Watched) -> None:
        """Begin to watch."""
        with self._lock:
            self._watched = (*self._watched, watched)
        self.run_soon(_wake_up)

    def remove(self, watched: Watched) -> None:
        """Watch it no more; nothing happens when it was not watched."""
        with self._lock:
            self._watched = tuple(other for other in self._watched if other is not watched)

    def run_soon(self, task: Callable[[], None]) -> None:
        """Run a short `task` on this thread, which it must neither block nor kill by raising."""
        self._tasks.put(task)

    def _run(self) -> None:
        scan_at = time.monotonic()
        while True:
            with suppress(queue.Empty):
                self._tasks.get(timeout=SCAN_EVERY.total_seconds() if self._watched else None)()
            now = time.monotonic()
            if now >= scan_at:
                scan_at = now + SCAN_EVERY.total_seconds()
                for watched in self._watched:
                    watched.cancel_overdue(now)


def _wake_up() -> None:
    """Do nothing: being there ends the sleep without a timeout."""
