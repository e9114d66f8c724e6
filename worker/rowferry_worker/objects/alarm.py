"""One thread that calls functions later: what waits costs no thread of its own."""

import heapq
import itertools
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Condition, Thread

_log = logging.getLogger(__name__)


class Alarm:
    """Calls functions at their time, one after the other; they must not block. Its thread stays from first use on."""

    def __init__(self) -> None:
        """Begin with nothing to do."""
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._changed = Condition()
        self._thread: Thread | None = None

    def call_later(self, wait: timedelta, function: Callable[[], None]) -> None:
        """Call `function` on the alarm's thread after `wait`."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + wait.total_seconds(), next(self._order), function))
            if self._thread is None:
                self._thread = Thread(target=self._run, name="alarm", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            function = self._next()
            try:
                function()
            except Exception:  # noqa: BLE001 - one of many; the others still have their time
                _log.exception("what was to be done later failed")

    def _next(self) -> Callable[[], None]:
        """Wait for the next function that is due, and return it."""
        with self._changed:
            while not self._due or self._due[0][0] > time.monotonic():
                self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
            return heapq.heappop(self._due)[2]
