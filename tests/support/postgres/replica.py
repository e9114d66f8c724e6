"""A replica as the primary sees one: a connection that streams WAL, and reports what it has replayed."""

import select
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn

WAL_DATA, KEEPALIVE = b"w", b"k"
"""Messages of the streaming replication protocol: https://www.postgresql.org/docs/current/protocol-replication.html."""


class Replica:
    """Receives WAL from now on; replays nothing until it is told to."""

    def __init__(self, connection: PGconn, at: str) -> None:
        """`connection`: streams from the position `at` on."""
        self._connection = connection
        high, low = (int(half, 16) for half in at.split("/"))
        self._replayed = self._received = (high << 32) + low

    def receive(self) -> None:
        """Take in what has come, and report how far it was replayed."""
        connection = self._connection
        while select.select([connection.socket], [], [], 0)[0]:
            connection.consume_input()
            length = 1
            while length > 0:
                length, data = connection.get_copy_data(1)
                if length > 0 and data[:1] == WAL_DATA:
                    (start,) = struct.unpack_from(">q", data, 1)
                    self._received = max(self._received, start + length - 25)
                elif length > 0 and data[:1] == KEEPALIVE:
                    self._received = max(self._received, *struct.unpack_from(">q", data, 1))
        position = self._received, self._received, self._replayed
        connection.put_copy_data(struct.pack(">cqqqqb", b"r", *position, 0, 0))
        connection.flush()

    def replay(self) -> None:
        """Replay all that has come."""
        self._replayed = self._received


@contextmanager
def streaming_replica(dsn: str) -> Iterator[Replica]:
    """Yield a replica of the server that a superuser's DSN leads to."""
    connection = pq.PGconn.connect(make_conninfo(dsn, replication="true").encode())
    try:
        assert connection.status == pq.ConnStatus.OK, connection.error_message
        (at,) = (connection.exec_(b"IDENTIFY_SYSTEM").get_value(0, 2) or b"",)
        begun = connection.exec_(b"START_REPLICATION PHYSICAL " + at)
        assert begun.status == pq.ExecStatus.COPY_BOTH, connection.error_message
        connection.nonblocking = 1
        yield Replica(connection, at.decode())
    finally:
        connection.finish()
