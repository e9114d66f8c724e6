"""The ledger's own autocommit connection: what is said here stays said, whatever becomes of the batch."""

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
from rowferry.db.statements import statement
from rowferry.db.timeouts import ANSWER_DEADLINE, answered, is_pooled, lock_timeout
from rowferry.errors import DatabaseUnavailable, PoolExhausted

Owed = tuple[str, tuple[Any, ...]]
"""A function of the schema, and its arguments."""


class Ledger:
    """One connection for a whole worker process; its threads take turns.

    A session that is lost may still be at work in the server. The next one ends it before it says anything, so that
    nothing is recorded behind its back.
    """

    def __init__(self, worker_id: str) -> None:
        """Connect at first use, and again after every loss. No two ledgers may have the same `worker_id`."""
        self._worker_id = worker_id
        self._connection: Connection | None = None
        self._connected_at = 0.0
        self._turn = Lock()
        self._owed: deque[Owed] = deque()

    def owe(self, function: str, *arguments: Any) -> None:
        """Call a function as soon as the database can be reached: before the next call, whosever that is.

        Else another slot could claim a batch that this process has lost, and take the loss for a crash. The function
        may be called twice, when its first answer is lost.
        """
        self._owed.append((function, arguments))

    def settle(self) -> None:
        """Call what is owed, now. Raises DatabaseUnavailable when the connection is lost; it stays owed then."""
        self._ask(None)

    def call(
        self, function: str, *arguments: Any, if_lost: Owed | None = None, within: timedelta | None = None
    ) -> list[DictRow]:
        """Call a function of the schema and commit. Raises DatabaseUnavailable when the connection is lost.

        `if_lost` is owed then, before any other thread has its turn. `within`: the connection is cut where there is no
        answer by then; None: by when any statement is given up.
        """
        return self._ask((function, arguments), if_lost, within)

    def connected_for(self) -> timedelta:
        """Return for how long this connection has reached the database; zero where there is none."""
        since = time.monotonic() if self._connection is None else self._connected_at
        return timedelta(seconds=time.monotonic() - since)

    def _ask(self, asked: Owed | None, if_lost: Owed | None = None, within: timedelta | None = None) -> list[DictRow]:
        with self._take_turn(within):
            try:
                connection = self._connect()
                patience = ANSWER_DEADLINE if within is None else within - lock_timeout()
                with translated_errors(), answered(connection, patience):
                    while self._owed:
                        self._say(connection, self._owed[0])
                        self._owed.popleft()
                    return self._say(connection, asked) if asked else []
            except DatabaseUnavailable:
                if if_lost:
                    self._owed.append(if_lost)
                self._drop()
                raise

    @contextmanager
    def _take_turn(self, within: timedelta | None) -> Generator[None]:
        """Wait for the turn. Raises PoolExhausted where another thread has waited for an answer all the while."""
        if within is None:
            with self._turn:
                yield
            return
        if not self._turn.acquire(timeout=within.total_seconds()):
            raise PoolExhausted("the ledger waits for a connection")
        try:
            yield
        finally:
            self._turn.release()

    def _say(self, connection: Connection, said: Owed) -> list[DictRow]:
        function, arguments = said
        if not is_pooled():
            return call(connection, function, *arguments)
        with connection.transaction():
            self._lock(connection)
            return call(connection, function, *arguments)

    def _lock(self, connection: Connection) -> None:
        parameters = {"worker": self._worker_id, "is_local": is_pooled()}
        connection.execute(statement("lock_ledger"), parameters)

    def _connect(self) -> Connection:
        """Return the connection. Raises DatabaseBusy when the session before it does not end within `lock_timeout`."""
        if self._connection is None:
            connection = connect(f"ledger {self._worker_id}", autocommit=True, bounded=True)
            try:
                with translated_errors():
                    with suppress(errors.InsufficientPrivilege):  # Then it ends by itself.
                        connection.execute(statement("end_lost_ledger"), {"worker": self._worker_id})
                    self._lock(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._connected_at = connection, time.monotonic()
        return self._connection

    def close(self) -> None:
        """Close the connection; the next call would open another."""
        with self._turn:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
