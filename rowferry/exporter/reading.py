"""Reads the views that the exporter shows, in transactions that can do nothing else."""

import time
from dataclasses import dataclass

from psycopg.rows import DictRow

from rowferry.database import Connection, connect, translated_errors
from rowferry.statements import statement


@dataclass(frozen=True, slots=True)
class Reading:
    """What the views said."""

    progress: list[DictRow]
    """One row a migration and queue."""
    migrations: list[DictRow]
    hosts: list[DictRow]
    seconds: float
    """How long the queries took."""
    read_at: float
    """When they were through, by time.monotonic()."""


class Reader:
    """Holds the connection; one thread at a time may read."""

    def __init__(self) -> None:
        """Connect at the first reading, and again after every failure."""
        self._connection: Connection | None = None

    def read(self) -> Reading:
        """Return what the views say now. Raises DatabaseUnavailable, DatabaseBusy or UserMistake."""
        try:
            with translated_errors():
                return _read(self._connect())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next reading would open another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = connect("exporter", autocommit=True)
        return self._connection


def _read(connection: Connection) -> Reading:
    began = time.monotonic()
    names = ("exporter_progress", "exporter_migrations", "exporter_hosts")
    with connection.transaction():
        connection.execute(statement("exporter_transaction"))
        progress, migrations, hosts = (connection.execute(statement(name)).fetchall() for name in names)
    ended = time.monotonic()
    return Reading(progress, migrations, hosts, ended - began, ended)
