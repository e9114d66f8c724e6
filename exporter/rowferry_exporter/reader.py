"""Reads the views that the metrics are made of."""

import time
from dataclasses import dataclass

from psycopg.rows import DictRow

from rowferry.db.connection import Connection, connect, translated_errors
from rowferry.db.statements import statement

MOST = 1_000
"""Of so many queues, and of so many migrations, there are metrics: of the unfinished, then of the newest."""


@dataclass(frozen=True, slots=True)
class ViewRows:
    """The rows of the views, read in one transaction."""

    queues: list[DictRow]
    """One row a migration and queue, MOST at most."""
    migrations: list[DictRow]
    hosts: list[DictRow]
    transactions: list[DictRow]
    tables: list[DictRow]
    seconds: float
    """Duration of the queries."""
    read_at: float
    """When the queries ended, by time.monotonic()."""


class Reader:
    """Holds the connection; not thread-safe."""

    def __init__(self) -> None:
        # Opened by the first reading, and again after every failure.
        self._connection: Connection | None = None

    def read(self) -> ViewRows:
        """Return a reading. Raises DatabaseUnavailable, DatabaseBusy or UsageError."""
        try:
            with translated_errors():
                return _read(self._connect())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; another reading would open a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = connect("exporter", autocommit=True)
        return self._connection


def _read(connection: Connection) -> ViewRows:
    began = time.monotonic()
    names = ("exporter_queues", "exporter_migrations", "exporter_hosts", "exporter_transactions", "exporter_tables")
    with connection.transaction():
        connection.execute(statement("exporter_transaction"))
        rows = (connection.execute(statement(name), {"limit": MOST}).fetchall() for name in names)
        queues, migrations, hosts, transactions, tables = rows
    ended = time.monotonic()
    return ViewRows(queues, migrations, hosts, transactions, tables, ended - began, ended)
