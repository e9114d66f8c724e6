"""Deadlines of statements, kept by the client: a connection that misses its own is cut.

The kernel ends a connection to a peer that is dead, but not to one that acknowledges packets and never answers.
"""

import math
import os
import socket
import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

Session = psycopg.Connection[Any]

ANSWER_DEADLINE = timedelta(seconds=20)
"""How long a statement of a worker may take, beside its waits for locks."""
SCAN_INTERVAL = timedelta(seconds=0.25)
"""How late a connection may be cut."""


class DeadlineMonitor:
    """Cuts overdue connections on one daemon thread; a timer, which is a thread, for each statement costs 0.1 ms."""

    def __init__(self) -> None:
        self._until: dict[Session, float] = {}
        """When each waiting connection is cut, as `time.monotonic()`."""
        self._lock = threading.Lock()
        """Held for changes of `_until`, and while a connection is cut: it is not closed and its socket reused then."""
        self._thread: threading.Thread | None = None

    def enter(self, connection: Session, seconds: float) -> None:
        """Begin a deadline."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rowferry-deadlines", daemon=True)
                self._thread.start()
            self._until[connection] = time.monotonic() + seconds

    def leave(self, connection: Session) -> None:
        """End it."""
        with self._lock:
            del self._until[connection]

    def _run(self) -> None:
        while True:
            time.sleep(SCAN_INTERVAL.total_seconds())
            now = time.monotonic()
            with self._lock:
                for connection in [connection for connection, until in self._until.items() if until <= now]:
                    self._until[connection] = math.inf
                    cut(connection)


_monitor = DeadlineMonitor()


class BoundedConnection(psycopg.Connection[Any]):
    """A connection of a worker: each statement ends within its deadline, or the connection is cut."""

    answer_within = ANSWER_DEADLINE
    """How long each of its statements may take."""

    def wait(self, *arguments: Any, **settings: Any) -> Any:
        """Wait for an answer, as psycopg does for all of its methods."""
        _monitor.enter(self, self.answer_within.total_seconds())
        try:
            return super().wait(*arguments, **settings)
        finally:
            _monitor.leave(self)


def set_deadline(connection: Session, within: timedelta) -> None:
    """Have each statement of a worker's connection end within another deadline, from now on."""
    assert isinstance(connection, BoundedConnection)
    connection.answer_within = within


def cut(connection: Session) -> None:
    """Shut the socket down under the thread that waits on it."""
    with suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        with duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)
