"""One connection to the fake S3 server: reads requests one after the other, and sends the responses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rowferry_lab.servers.fake_s3.http import Request, Response

if TYPE_CHECKING:
    from rowferry_lab.servers.fake_s3.server import FakeS3

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.Protocol):
    """A connection that a client has opened."""

    def __init__(self, server: FakeS3) -> None:
        """Begin with nothing read."""
        self._server = server
        self._transport: Any = None
        self._head = b""
        """What has come of a head."""
        self._request: Request | None = None
        """The request whose body is coming."""
        self._pieces: list[bytes] = []
        self._missing = 0
        """Bytes of the body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        del exc
        self._server.connections.discard(self)

    def abort(self) -> None:
        """End the connection at once, by a reset where something was under way."""
        self._transport.abort()

    def write(self, response: Response) -> None:
        """Send a response; a client that has gone is sent nothing."""
        if not self._transport.is_closing():
            self._transport.writelines(response.render())

    def data_received(self, data: bytes) -> None:
        """Read heads and bodies."""
        while data:
            data = self._read_head(data) if self._request is None else self._read_body(self._request, data)

    def _read_head(self, data: bytes) -> bytes:
        """Look for the end of the head and return what comes after it."""
        self._head += data
        head, end, rest = self._head.partition(b"\r\n\r\n")
        if not end:
            return b""
        self._head = b""
        request = Request(head)
        length = request.read_length()
        if length is None:
            self._transport.close()
            return b""
        if not rest and request.headers.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(CONTINUE)
        self.begin(request, length)
        return rest

    def begin(self, request: Request, length: int) -> None:
        """Read the body, or respond where there is none."""
        if length:
            self._request, self._missing = request, length
        else:
            self._server.respond(request, self)

    def _read_body(self, request: Request, data: bytes) -> bytes:
        """Take what belongs to the body, respond when it is complete, and return what comes after it."""
        piece = data[: self._missing]
        self._pieces.append(piece)
        self._missing -= len(piece)
        if not self._missing:
            request.body = b"".join(self._pieces)
            self._request = None
            self._pieces.clear()
            self._server.respond(request, self)
        return data[len(piece) :]
