"""Autocommit connection for attempt records; they survive a rollback of the batch."""

import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Lock
from typing import Any

from psycopg import errors
from psycopg.rows import DictRow

from rowferry.db.connection import Connection, call, connect, translated_errors
from rowferry.db.deadlines import set_deadline
from rowferry.db.statements import statement
from rowferry.db.timeouts import is_pooled, statement_deadline
from rowferry.errors import DatabaseUnavailable, PoolExhausted

PendingCall = tuple[str, tuple[Any, ...]]
"""A function of the schema, and its arguments."""


class Ledger:
    """One connection for a whole worker process; its threads take turns.

    The server may still be running a lost session. The next session ends it first, so that no record is written late.
    """

    def __init__(self, worker_id: str) -> None:
        """Connect at first use, and again after every loss. No two ledgers may have the same `worker_id`."""
        self.worker_id = worker_id
        self.is_pooled = is_pooled()
        """Whether PgBouncer in transaction mode stands before the database."""
        self._deadline = statement_deadline()
        self._connection: Connection | None = None
        self._connected_at = 0.0
        self._turn = Lock()
        self._pending: deque[PendingCall] = deque()
        self.waits_for: str | None = None
        """Why there is no connection for a batch; then the ledger keeps none between calls, so that others get two."""

    def enqueue(self, function: str, *arguments: Any) -> None:
        """Call a function before the next call of any thread, once the database can be reached.

        Otherwise another slot could claim a batch that this process has lost, and take the loss for a crash. The
        function is called again when the first response is lost.
        """
        self._pending.append((function, arguments))

    def flush(self) -> None:
        """Make the pending calls now. Raises DatabaseUnavailable when the connection is lost; they stay pending."""
        self._call(None)

    def call(
        self, function: str, *arguments: Any, if_lost: PendingCall | None = None, within: timedelta | None = None
    ) -> list[DictRow]:
        """Make the pending calls, call a function of the schema, and commit.

        Raises DatabaseUnavailable when the connection is lost; `if_lost` is pending then, ahead of other threads'
        calls. `within`: how long to wait for the connection, and for each response; None: `statement_deadline`.
        """
        return self._call((function, arguments), if_lost, within)

    def give_way(self, reason: str) -> None:
        """Keep no connection between calls until `keep`; `reason`: why there is none for a batch."""
        self.waits_for = reason
        self.close()

    def keep(self) -> None:
        """Keep the connection again. Raises DatabaseUnavailable where there is none left."""
        self.waits_for = None
        self.flush()

    def connected_for(self) -> timedelta:
        """Return the age of this connection; zero where there is none."""
        since = time.monotonic() if self._connection is None else self._connected_at
        return timedelta(seconds=time.monotonic() - since)

    def close(self) -> None:
        """Close the connection; the next call would open another."""
        with self._turn:
            self._drop()

    def _call(
        self, last: PendingCall | None, if_lost: PendingCall | None = None, within: timedelta | None = None
    ) -> list[DictRow]:
        with self._take_turn(within):
            try:
                connection = self._connect()
                set_deadline(connection, within or self._deadline)
                with translated_errors():
                    while self._pending:
                        self._execute(connection, *self._pending[0])
                        self._pending.popleft()
                    rows = self._execute(connection, *last) if last else []
                if self.waits_for is not None:
                    self._drop()
                return rows
            except DatabaseUnavailable:
                if if_lost:
                    self._pending.append(if_lost)
                self._drop()
                raise

    @contextmanager
    def _take_turn(self, within: timedelta | None) -> Generator[None]:
        """Wait for the turn. Raises PoolExhausted where another thread waits for a response all the while."""
        if not self._turn.acquire(timeout=-1 if within is None else within.total_seconds()):
            raise PoolExhausted("the ledger waits for a connection")
        try:
            yield
        finally:
            self._turn.release()

    def _execute(self, connection: Connection, function: str, arguments: tuple[Any, ...]) -> list[DictRow]:
        if not self.is_pooled:
            return call(connection, function, *arguments)
        with connection.transaction():
            self._lock(connection)
            return call(connection, function, *arguments)

    def _lock(self, connection: Connection) -> None:
        parameters = {"worker": self.worker_id, "is_local": self.is_pooled}
        connection.execute(statement("lock_ledger"), parameters)

    def _connect(self) -> Connection:
        """Return the connection. Raises DatabaseBusy when the session before it does not end within `lock_timeout`."""
        if self._connection is None:
            connection = connect(f"ledger {self.worker_id}", autocommit=True, bounded=True)
            try:
                with translated_errors():
                    with suppress(errors.InsufficientPrivilege):  # the lost session then ends by itself
                        connection.execute(statement("end_lost_ledger"), {"worker": self.worker_id})
                    self._lock(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._connected_at = connection, time.monotonic()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
