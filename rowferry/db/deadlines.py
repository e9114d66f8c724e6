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
        self.until: dict[Session, float] = {}
        """When each waiting connection is cut, as `time.monotonic()`."""
        self.lock = threading.Lock()
        """Guards `until`, and keeps a connection from being closed, and its socket reused, while it is cut."""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread unless it runs; the caller holds the lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rowferry-deadlines", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(SCAN_INTERVAL.total_seconds())
            now = time.monotonic()
            with self.lock:
                for connection in [connection for connection, until in self.until.items() if until <= now]:
                    self.until[connection] = math.inf
                    cut(connection)


_monitor = DeadlineMonitor()


class deadline:  # noqa: N801 - a context manager; as a generator it would cost more on every statement
    """Cut the connection when the statements of the block are not answered `within`.

    They then end with the OperationalError of a lost connection. Of nested deadlines the earliest counts.
    """

    __slots__ = ("_connection", "_outer", "_within")

    def __init__(self, connection: Session, within: timedelta) -> None:
        self._connection = connection
        self._within = within.total_seconds()

    def __enter__(self) -> None:
        with _monitor.lock:
            _monitor.start()
            self._outer = _monitor.until.get(self._connection)
            until = time.monotonic() + self._within
            _monitor.until[self._connection] = until if self._outer is None else min(until, self._outer)

    def __exit__(self, *_: object) -> None:
        with _monitor.lock:
            if self._outer is None:
                del _monitor.until[self._connection]
            else:
                _monitor.until[self._connection] = self._outer


class BoundedConnection(psycopg.Connection[Any]):
    """A connection of a worker: each statement is answered within its deadline, or the connection is cut."""

    answer_within = ANSWER_DEADLINE

    def wait(self, *arguments: Any, **settings: Any) -> Any:
        """Wait for an answer, as psycopg does for all of its methods."""
        with deadline(self, self.answer_within):
            return super().wait(*arguments, **settings)


def cut(connection: Session) -> None:
    """Shut the socket down under the thread that waits on it."""
    with suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        with duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)
