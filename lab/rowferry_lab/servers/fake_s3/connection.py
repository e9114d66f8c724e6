"""One connection to the fake S3 server: reads requests, sends responses, and keeps to the rates of the link."""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from rowferry_lab.servers.fake_s3.body import Body
from rowferry_lab.servers.fake_s3.http import Request, Response
from rowferry_lab.servers.fake_s3.settings import Link
from rowferry_lab.servers.fake_s3.store import Store

MAX_HEAD_BYTES = 64 * 1024
HEAD_BYTES = 8 * 1024
"""How much is searched for the end of a head at a time; the rest of what has come is not copied."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
RECEIVE_BYTES = 256 * 1024
SLICE_BYTES = 64 * 1024
"""What is received or sent at a time over a link with a rate, and what the kernel keeps for such a connection."""


class Meter:
    """When the next bytes have passed, in one direction."""

    def __init__(self) -> None:
        """Begin with nothing under way."""
        self._free_at = 0.0

    def reserve(self, now: float, size: int, per_second: float) -> float:
        """Return when these bytes have passed, after all before them; `per_second` 0: now."""
        if not per_second:
            return now
        self._free_at = max(self._free_at, now) + size / per_second
        return self._free_at


class Server(Protocol):
    """What a connection asks of its server."""

    store: Store
    link: Link
    up: Meter
    """All bytes that come."""
    down: Meter
    """All bytes that go."""
    bytes_received: int
    """Of bodies, also of those that are not complete."""
    silent_until: float
    """On the loop's clock: nothing is read before."""

    def take_connection(self, connection: "Connection") -> None:
        """Count the connection as open."""
        ...

    def drop_connection(self, connection: "Connection") -> None:
        """Count it as closed."""
        ...

    def take_cut_off(self, body: Body) -> None:
        """Do what the server does with a body that has not come to its end."""
        ...

    def begin(self, request: Request) -> bytes | None:
        """Return the response to a request that is refused before its body is read; None for all others."""
        ...

    def respond(self, request: Request, connection: "Connection") -> None:
        """Decide about a request and send the response to the connection when it is due."""
        ...


class Connection(asyncio.BufferedProtocol):
    """Reads one request after the other. All connections share one buffer, which is empty again after each read."""

    _shared = memoryview(bytearray(RECEIVE_BYTES))

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        """Share the server's objects."""
        self._server = server
        self._loop = loop
        self._transport: Any = None
        self._head = b""
        """The part of a head that has come."""
        self._body: Body | None = None
        self._up, self._down = Meter(), Meter()
        self._slices: deque[bytes | memoryview] = deque()
        self._is_sending = False
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport
        if self._is_limited():
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLICE_BYTES)
        self._server.take_connection(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Send nothing more; tell the server of a body that was cut off."""
        del exc
        self._slices.clear()
        if self._body is not None:
            self._server.take_cut_off(self._body)
        self._server.drop_connection(self)

    def close(self) -> None:
        """End the connection once all is sent."""
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once, by a reset where something was under way."""
        self._transport.abort()

    # Requests

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to receive into."""
        del sizehint
        return self._shared[:SLICE_BYTES] if self._is_limited() else self._shared

    def buffer_updated(self, nbytes: int) -> None:
        """Respond to every request that is complete."""
        if self._is_refused:
            return
        self._pace_reading(nbytes)
        data = self._shared[:nbytes]
        while data:
            data = self._read_head(data) if self._body is None else self._read_body(data)

    def _read_head(self, data: memoryview) -> memoryview:
        """Look for the end of the head and return what was not looked at."""
        known = len(self._head)
        self._head += data[:HEAD_BYTES]
        end = self._head.find(b"\r\n\r\n", max(known - 3, 0))
        if end < 0:
            return data[HEAD_BYTES:] if len(self._head) <= MAX_HEAD_BYTES else self._refuse()
        request, self._head = Request(self._head[:end]), b""
        rest = data[end + 4 - known :]
        length = request.read_length()
        if length is None:
            return self._refuse()
        refusal = self._server.begin(request)
        if refusal is not None:
            return self._refuse_unread(refusal)
        if not length:
            self._server.respond(request, self)
            return rest
        store = self._server.store
        keep = store.keeps_parts or request.operation != "UploadPart"
        self._body = Body(request, length, store.expect(request.key), keep=keep)
        if not rest and request.waits_for_continue:
            self._transport.write(CONTINUE)
        return rest

    def _read_body(self, data: memoryview) -> memoryview:
        """Take what belongs to the body, respond when it is complete, and return what comes after it."""
        body = self._body
        assert body is not None
        size = body.missing
        body.take(data[:size])
        self._server.bytes_received += min(size, len(data))
        if not body.missing:
            self._body = None
            self._server.respond(body.end(), self)
        return data[size:]

    def _refuse_unread(self, response: bytes) -> memoryview:
        """Send a response and drop what still comes: a reset would throw the response away."""
        self._is_refused = True
        self._transport.write(response)
        self._transport.write_eof()
        return self._shared[:0]

    def _refuse(self) -> memoryview:
        self._transport.close()
        return self._shared[:0]

    # Responses

    def write(self, response: Response) -> None:
        """Send a response, in slices where the link has a rate; a client that has gone is sent nothing."""
        if self._transport.is_closing():
            return
        pieces = response if isinstance(response, tuple) else (response,)
        if not self._is_limited():
            self._transport.writelines(pieces)
            return
        for piece in pieces:
            self._slices.extend(piece[first : first + SLICE_BYTES] for first in range(0, len(piece), SLICE_BYTES))
        if not self._is_sending:
            self._send_slice()

    def _send_slice(self) -> None:
        self._is_sending = bool(self._slices)
        if self._slices:
            piece = self._slices.popleft()
            self._transport.write(piece)
            self._loop.call_at(self._reserve(self._down, self._server.down, len(piece)), self._send_slice)

    # Rates

    def _is_limited(self) -> bool:
        link = self._server.link
        return bool(link.connection_bytes_per_second or link.total_bytes_per_second)

    def _reserve(self, own: Meter, shared: Meter, size: int) -> float:
        now, link = self._loop.time(), self._server.link
        return max(
            own.reserve(now, size, link.connection_bytes_per_second),
            shared.reserve(now, size, link.total_bytes_per_second),
        )

    def _pace_reading(self, size: int) -> None:
        resume_at = max(self._reserve(self._up, self._server.up, size), self._server.silent_until)
        if resume_at > self._loop.time():
            self._transport.pause_reading()
            self._loop.call_at(resume_at, self._resume_reading)

    def _resume_reading(self) -> None:
        if self._transport.is_closing():
            return
        resume: Callable[[], None] = self._transport.resume_reading
        resume()
