"""The ledger's own autocommit connection: what is said here stays said, whatever becomes of the batch."""

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

    def call(self, function: str, *arguments: Any) -> list[DictRow]:
        """Call a function of the schema and commit. Raises DatabaseUnavailable when the connection is lost."""
        with self._turn:
            if self._connection is None:
                self._connection = connect(self._purpose, autocommit=True)
            try:
                with translated_errors(), answered(self._connection):
                    return call(self._connection, function, *arguments)
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
