"""What a stand-in server said over which connections."""

import socket

from support.s3.stand_in import Behaviour, StandIn

OK = b"HTTP/1.1 200 OK\r\n"


def say(words: bytes, *, close: bool = False) -> Behaviour:
    """Send these bytes, and close the connection if told."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(words)
        if close:
            connection.close()

    return behave


def connections_of(server: StandIn) -> int:
    return len(server._connections)
