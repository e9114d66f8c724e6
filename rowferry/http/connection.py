"""HTTP/1.1 on one connection: one request at a time is written, then its response is read. Event-loop thread only."""

import asyncio
from collections.abc import Callable
from typing import cast

from rowferry.errors import ObjectError, Unreachable
from rowferry.http.deadlines import InFlight
from rowferry.http.parser import ResponseParser

PIECE_BYTES = 256 * 1024
"""How much of a body is written at once."""
MANY, GATHER_SECONDS = 128, 0.001
"""With so many requests in flight, those of a millisecond are written together. Their responses then come together as
well, and both ends wake up once for several. It costs latency where the CPU is the bound, not latency."""


class StaleConnection(Unreachable):
    """A kept connection ended before a byte of the response: the server had closed it, and read no request."""


class Outbox:
    """Writes small requests; those of a millisecond together while many connections are busy."""

    def __init__(self) -> None:
        """Start empty."""
        self.busy = 0
        """Connections with a request in flight."""
        self._unwritten: dict[asyncio.Transport, bytes] = {}

    def write(self, transport: asyncio.Transport, message: bytes) -> None:
        """Write a request, at the latest GATHER_SECONDS from now."""
        if self.busy < MANY:
            transport.write(message)
            return
        if not self._unwritten:
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self._flush)
        self._unwritten[transport] = message

    def holds(self, transport: asyncio.Transport | None) -> bool:
        """Return whether a request is still to be written."""
        return transport in self._unwritten

    def _flush(self) -> None:
        unwritten, self._unwritten = self._unwritten, {}
        for transport, message in unwritten.items():
            if not transport.is_closing():
                transport.write(message)


class Connection(asyncio.Protocol):
    """One connection to a server, or to the proxy before it."""

    def __init__(self, outbox: Outbox, on_lost: "Callable[[Connection], None]") -> None:
        """`on_lost` is called once after the connection has ended."""
        self._outbox = outbox
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parser: ResponseParser | None = None
        self._response: asyncio.Future[None] | None = None
        """Done when the response is complete; its exception is why there is none."""
        self._drained: asyncio.Future[None] | None = None
        self._in_flight: InFlight | None = None
        self._is_paused = False
        self._is_kept = False
        """Whether it has brought a response before."""
        self._is_clean = True
        """Whether the last request and its response were read to the end, so that the next may follow."""
        self.idle_since = 0.0
        """When its pool got it back, by the loop's clock."""

    @property
    def is_usable(self) -> bool:
        """Return whether another request may be sent on it."""
        return self._is_clean and self._transport is not None and not self._transport.is_closing()

    async def exchange(
        self, head: bytes, body: bytes, parser: ResponseParser, in_flight: InFlight | None = None
    ) -> None:
        """Write a request and read its response into `parser`; `in_flight` is told as parts of it come in.

        Raises StaleConnection where a kept connection had been closed, Unreachable where it ends without a response,
        ServerFault and ObjectRejected for what the parser refuses. After any error the connection is of no use.
        """
        if not self.is_usable or self._transport is None:
            raise self._explain_silence(None)
        self._parser, self._in_flight = parser, in_flight
        self._response = asyncio.get_running_loop().create_future()
        self._is_clean = False
        self._outbox.busy += 1
        try:
            # A server may refuse a request before it has read the body: then the rest is not sent.
            if len(body) <= PIECE_BYTES:
                self._outbox.write(self._transport, head + body if body else head)
                is_sent = True
            else:
                is_sent = await self._write_in_pieces(self._transport, head, body)
            await self._response
            # The next request must not stand behind the unread rest of a refused one.
            has_read_all = not body or (is_sent and parser.status < 300)
            self._is_clean = parser.leaves_connection_usable and has_read_all
            self._is_kept = True
        finally:
            parser.close()
            self._outbox.busy -= 1
            if self._response.done() and not self._response.cancelled():
                self._response.exception()  # seen, also where the task was cancelled at the same moment
            self._parser = self._response = self._drained = self._in_flight = None

    def close(self) -> None:
        """Close at once, without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: ObjectError) -> None:
        """End what is in flight with an error."""
        self._settle(error)
        self.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        """Write no more for now: the server reads more slowly than we write."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Go on writing."""
        self._is_paused = False
        self._wake_writer()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; what comes without having been asked for ends the connection."""
        parser = self._parser
        if parser is None or self._response is None or self._response.done() or self._outbox.holds(self._transport):
            self.close()
            return
        try:
            parser.feed(data)
        except ObjectError as error:
            self.fail(error)
            return
        if parser.is_complete:
            self._settle(None)
        elif parser.has_headers and self._in_flight is not None:
            self._in_flight.note_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is in flight.

        1. A refusal that does not say how long it is ends with the connection: it is complete.
        2. No byte has come on a kept connection: the server had closed it before the request, which may be resent.
        3. In any other case the response is lost.
        """
        parser = self._parser
        if parser is not None and exc is None and parser.ends_with_connection:
            self._settle(None)
        elif parser is not None and not parser.has_begun:
            self._settle(self._explain_silence(exc))
        elif parser is not None:
            where = "in the middle of its response" if parser.has_headers else "without a response"
            self._settle(Unreachable("ConnectionLost", str(exc or f"the server closed the connection {where}")))
        self._on_lost(self)

    async def _write_in_pieces(self, transport: asyncio.Transport, head: bytes, body: bytes) -> bool:
        """Write a large request as the server reads it; return whether all of it was written before the response.

        A transport keeps what it cannot send: under TLS it would keep the whole body for good.
        """
        assert self._response is not None
        transport.write(head)
        unsent = memoryview(body)
        while unsent and not self._response.done():
            if self._is_paused:
                self._drained = asyncio.get_running_loop().create_future()
                await self._drained
                continue
            piece, unsent = unsent[:PIECE_BYTES], unsent[PIECE_BYTES:]
            transport.write(piece)
        return not unsent

    def _explain_silence(self, exc: Exception | None) -> Unreachable:
        words = str(exc or "the server closed the connection without a response")
        return (StaleConnection if self._is_kept else Unreachable)("ConnectionLost", words)

    def _settle(self, error: ObjectError | None) -> None:
        """End the wait for the response, and that of the writer."""
        if self._response is not None and not self._response.done():
            if error is None:
                self._response.set_result(None)
            else:
                self._response.set_exception(error)
        self._wake_writer()

    def _wake_writer(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
