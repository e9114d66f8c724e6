"""A server on raw sockets for what no S3 server should do: garbage, responses that are cut, resets, silence."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Self

Behaviour = Callable[[socket.socket], None]
"""Responds to one request on its connection; raises OSError, or closes the socket, to end the connection."""


def answer(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Send an HTTP answer; the names of headers are written with `_` for `-`."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    message = "\r\n".join([*lines, "", ""]).encode() + body
    return lambda connection: connection.sendall(message)


def refuse(status: int, code: str, **headers: str) -> Behaviour:
    """Send an answer with S3's error of this code, and headers."""
    return answer(status, error_body(code), **headers)


def error_body(code: str, message: str = "as told") -> bytes:
    return f'<?xml version="1.0"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'.encode()


def keep_silent(connection: socket.socket) -> None:
    """Never answer; the connection stays open until the client leaves."""
    while connection.recv(65536):
        pass
    raise ConnectionError("the client left")


def reset(connection: socket.socket) -> None:
    """Break the connection off with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def hang_up(connection: socket.socket) -> None:
    """Close the connection without an answer."""
    connection.close()


def babble(connection: socket.socket) -> None:
    """Send what is not HTTP, and close."""
    connection.sendall(b"good morning\r\n\r\n")
    connection.close()


def stop_halfway(connection: socket.socket) -> None:
    """Promise nine bytes, send three, and close."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
    connection.close()


class StandIn:
    """Responds to the nth request with the nth behaviour, and all after the last with the last."""

    def __init__(self, *behaviours: Behaviour, tls: ssl.SSLContext | None = None, reads_bodies: bool = True) -> None:
        """Without `reads_bodies` it responds at the end of a request's headers."""
        self._reads_bodies = reads_bodies
        self.requests: list[str] = []
        """The head of each request: its request line and headers."""
        self._asked = threading.local()
        self._behaviours: Sequence[Behaviour] = behaviours
        self._tls = tls
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def endpoint_url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def request_lines(self) -> list[str]:
        return [request.split("\r\n")[0] for request in self.requests]

    def judging(self, judge: Callable[[str], Behaviour]) -> Self:
        """Respond to each request as `judge` says of its head."""
        self._behaviours = [lambda connection: judge(self._asked.head)(connection)]  # noqa: PLW0108 - at each request
        return self

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(10)
        for connection in self._connections:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of TLS would take it away from its thread
        for thread in self._threads[1:]:
            thread.join(10)
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), closing(connection):  # ValueError: a TLS socket was closed from outside
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                self._connections.append(connection)
                connection.do_handshake()
            buffered = b""
            while True:
                head, buffered = self._read_request(connection, buffered)
                with self._lock:
                    behaviour = self._behaviours[min(len(self.requests), len(self._behaviours) - 1)]
                    self.requests.append(head)
                self._asked.head = head
                behaviour(connection)

    def _read_request(self, connection: socket.socket, buffered: bytes) -> tuple[str, bytes]:
        """Return the head of the next request and what came after its body; OSError when the client left."""
        while b"\r\n\r\n" not in buffered:
            buffered += receive(connection) if self._reads_bodies else receive_line(connection)
        head, _, rest = buffered.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        while self._reads_bodies and len(rest) < int(lengths[0] if lengths else 0):
            rest += receive(connection)
        return head.decode(), rest[int(lengths[0] if lengths else 0) :]


def receive_line(connection: socket.socket) -> bytes:
    """Return the bytes up to the end of a line, and leave what comes after them."""
    is_tls = isinstance(connection, ssl.SSLSocket)  # there is no peeking under TLS
    peeked = connection.recv(1) if is_tls else connection.recv(65536, socket.MSG_PEEK)
    if not peeked:
        raise ConnectionError("the client left")
    if is_tls:
        return peeked
    end = peeked.find(b"\n") + 1
    return connection.recv(end or len(peeked))


def receive(connection: socket.socket) -> bytes:
    received = connection.recv(65536)
    if not received:
        raise ConnectionError("the client left")
    return received
