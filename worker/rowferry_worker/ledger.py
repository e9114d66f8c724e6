"""The ledger's own autocommit connection: what is said here stays said, whatever becomes of the batch."""

from collections import deque
from threading import Lock
from typing import Any

from psycopg.rows import DictRow

from rowferry.database import Connection, call, connect, translated_errors
from rowferry.errors import DatabaseUnavailable
from rowferry.session import answered


class Ledger:
    """One connection for a whole worker process; its threads take turns."""

    def __init__(self, worker_id: str) -> None:
        """Connect at first use, and again after every loss."""
        self._purpose = f"ledger {worker_id}"
        self._connection: Connection | None = None
        self._turn = Lock()
        self._owed: deque[tuple[str, tuple[Any, ...]]] = deque()

    def owe(self, function: str, *arguments: Any) -> None:
        """Call a function as soon as the database can be reached: before the next call, whosever that is.

        Else another slot could claim a batch that this process has lost, and take the loss for a crash. The function
        may be called twice, when its first answer is lost.
        """
        self._owed.append((function, arguments))

    def settle(self) -> None:
        """Call what is owed, now. Raises DatabaseUnavailable when the connection is lost; it stays owed then."""
        self._ask(None, ())

    def call(self, function: str, *arguments: Any) -> list[DictRow]:
        """Call a function of the schema and commit. Raises DatabaseUnavailable when the connection is lost."""
        return self._ask(function, arguments)

    def _ask(self, function: str | None, arguments: tuple[Any, ...]) -> list[DictRow]:
        with self._turn:
            if self._connection is None:
                self._connection = connect(self._purpose, autocommit=True, bounded=True)
            try:
                with translated_errors(), answered(self._connection):
                    while self._owed:
                        owed, owed_arguments = self._owed[0]
                        call(self._connection, owed, *owed_arguments)
                        self._owed.popleft()
                    return call(self._connection, function, *arguments) if function else []
            except DatabaseUnavailable:
                self._connection.close()
                self._connection = None
                raise

    def close(self) -> None:
        """Close the connection; the next call would open another."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
