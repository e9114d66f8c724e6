"""HTTP/1.1 on one connection: one request at a time is written, then its response is read. Event-loop thread only."""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from rowferry.errors import ObjectError, ServerFault, Unreachable
from rowferry.http.deadlines import InFlight
from rowferry.http.outbox import Outbox
from rowferry.http.parser import ResponseParser
from rowferry.http.pipe import Pipe

PIECE_BYTES = 256 * 1024
"""How much of a body is written at once."""
HEARD_BYTES = 1024 * 1024
"""A server that has taken so much of a body was there: if it leaves then, the request is not sent again as if a kept
connection had been closed before it came."""
UNREAD_BYTES = 256 * 1024
"""How much of a streamed body may wait for its reader before the server has to wait."""


class StaleConnection(Unreachable):
    """A kept connection ended before a byte of the response: the server had closed it, and read no request."""


class Receiver(Protocol):
    """Takes what comes on a connection, in the place of `exchange`."""

    def receive(self, data: bytes) -> None:
        """Take bytes that have come."""
        ...

    def lose(self, exc: Exception | None) -> None:
        """Take in that the connection has ended; `exc`: why, where the server did not close it."""
        ...

    def fail(self, error: ObjectError) -> None:
        """End what is in flight with an error, and close the connection."""
        ...


class Connection(asyncio.Protocol):
    """One connection to a server, or to the proxy before it."""

    def __init__(self, outbox: Outbox, on_lost: "Callable[[Connection], None]") -> None:
        """`on_lost` is called once after the connection has ended."""
        self._outbox = outbox
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Kept: before Python 3.12, asking for the running loop is a system call."""
        self._parser: ResponseParser | None = None
        self._response: asyncio.Future[None] | None = None
        """Done when the response is complete; its exception is why there is none."""
        self._receiver: Receiver | None = None
        """Takes what comes, where that is not `exchange`."""
        self._drained: asyncio.Future[None] | None = None
        self._in_flight: InFlight | None = None
        self._is_paused = False
        self._pipe: Pipe | None = None
        """What writes the body that is being sent, where that comes from another connection."""
        self._sink: Pipe | None = None
        """What the streamed body that comes is written to, as it comes."""
        self._arrived: asyncio.Future[None] | None = None
        """Done when there is more of a streamed body, or why there is not."""
        self._failure: ObjectError | None = None
        """Why a streamed body has ended too early."""
        self._is_kept = False
        """Whether it has brought a response before."""
        self._is_clean = True
        """Whether the last request and its response were read to the end, so that the next may follow."""
        self.idle_since = 0.0
        """When its pool got it back, by time.monotonic()."""

    @property
    def is_open(self) -> bool:
        """Return whether the transport is there and not being closed."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_usable(self) -> bool:
        """Return whether another request may be sent on it."""
        return self._is_clean and self.is_open

    async def exchange(
        self, head: bytes, body: bytes | Pipe, parser: ResponseParser, in_flight: InFlight | None = None
    ) -> None:
        """Write a request and read its response into `parser`; `in_flight` is told as parts of it come in.

        Returns at the headers where the body is streamed: `wait_for_pieces` then, while there are any, and `end_body`
        in any case. Raises StaleConnection where a kept connection had been closed, Unreachable where it ends without a
        response, ServerFault and ObjectRejected for what the parser refuses, SourceFailed for what `body` raises. After
        any error the connection is of no use.
        """
        if not self.is_usable or self._transport is None or self._loop is None:
            raise self._explain_silence(None)
        self._parser, self._in_flight = parser, in_flight
        self._response = self._loop.create_future()
        self._is_clean = False
        self._outbox.busy += 1
        try:
            # A server may refuse a request before it has read the body: then the rest is not sent.
            if not isinstance(body, bytes):
                is_sent = await self._write_from(self._transport, head, body)
            elif len(body) <= PIECE_BYTES:
                self._outbox.write(self._transport, head + body if body else head)
                is_sent = True
            else:
                is_sent = await self._write_in_pieces(self._transport, head, body)
            await self._response
            if not is_sent and parser.status < 300:
                raise ServerFault("UnreadableResponse", "the server reports success before it has read the request")
            # The next request must not stand behind the unread rest of a refused one.
            self._is_clean = not body or (is_sent and parser.status < 300)
            self._is_kept = True
        finally:
            if not (self._is_clean and parser.is_streamed):
                self._end_exchange(parser)

    def lend(self, receiver: Receiver) -> None:
        """Leave a usable connection to a receiver until `take_back`: it writes requests without a body, one by one."""
        self._receiver, self._is_clean = receiver, False
        self._outbox.busy += 1

    def write(self, head: bytes) -> None:
        """Write a request of the receiver that has the connection."""
        if self._transport is not None:
            self._outbox.write(self._transport, head)

    def take_back(self, *, is_clean: bool) -> None:
        """Take the connection from its receiver; `is_clean`: another request may follow the last one."""
        self._receiver, self._is_clean = None, is_clean
        self._is_kept = True
        self._outbox.busy -= 1

    def take_pieces(self) -> list[bytes]:
        """Return what has come of a streamed body and was not taken yet."""
        parser = self._parser
        if parser is None or not parser.buffered_bytes:
            return []
        if self._is_full(parser):
            cast("asyncio.Transport", self._transport).resume_reading()
        return parser.take_pieces()

    def _is_full(self, parser: ResponseParser) -> bool:
        """Return whether the server has to wait until the reader of a streamed body has taken some of it."""
        return parser.buffered_bytes >= UNREAD_BYTES and not parser.is_complete and self.is_open

    async def wait_for_pieces(self, in_flight: InFlight) -> None:
        """Wait for more of a streamed body, its end or `wake`. Raises why it has ended too early."""
        parser = self._parser
        if self._failure is not None:
            raise self._failure
        if parser is None or parser.is_complete:
            return
        self._in_flight = in_flight
        self._arrived = asyncio.get_running_loop().create_future()
        try:
            await self._arrived
        finally:
            self._in_flight = self._arrived = None
        if self._failure is not None:
            raise self._failure

    async def pass_on(self, pipe: Pipe, in_flight: InFlight) -> bytes:
        """Give a streamed body to `pipe` as it comes, and return its last piece.

        Empty where the target takes no more. Raises why the body has ended too early.
        """
        if self._failure is not None:
            raise self._failure
        parser = self._parser
        if parser is None or self._transport is None:
            return b""
        self._in_flight, self._sink = in_flight, pipe
        pipe.take(parser.take_pieces(), is_end=parser.is_complete)
        try:
            return await pipe.join(self._transport, in_flight)
        finally:
            self._in_flight = self._sink = None

    def wake(self) -> None:
        """End the wait of `wait_for_pieces`."""
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def end_body(self) -> None:
        """Read no more of a streamed body: where it was not read to its end, the connection is of no more use."""
        if self._parser is not None:
            self._end_exchange(self._parser)

    def _end_exchange(self, parser: ResponseParser) -> None:
        self._is_clean = self._is_clean and parser.is_complete and parser.leaves_connection_usable
        parser.close()
        self._outbox.busy -= 1
        response = self._response
        if response is not None and response.done() and not response.cancelled():
            response.exception()  # seen, also where the task was cancelled at the same moment
        self._parser = self._response = self._drained = self._in_flight = self._pipe = None

    def close(self) -> None:
        """Close at once, without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: ObjectError) -> None:
        """End what is in flight with an error."""
        if self._receiver is not None:
            self._receiver.fail(error)
        else:
            self._settle(error)
        self.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()

    def pause_writing(self) -> None:
        """Write no more for now: the server reads more slowly than we write."""
        self._is_paused = True
        if self._pipe is not None:
            self._pipe.pause(is_paused=True)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._is_paused = False
        self._wake_writer()
        if self._pipe is not None:
            self._pipe.pause(is_paused=False)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; what comes without having been asked for ends the connection."""
        if self._transport in self._outbox.unwritten:
            self.close()
            return
        if self._receiver is not None:
            self._receiver.receive(data)
            return
        parser = self._parser
        if parser is None or not self._expects(parser):
            self.close()
            return
        try:
            parser.feed(data)
        except ObjectError as error:
            self.fail(error)
            return
        if self._in_flight is not None and parser.has_headers:
            self._in_flight.note_progress()
        if parser.is_complete or parser.is_streamed:
            self._settle(None)
        if self._sink is not None:
            self._sink.take(parser.take_pieces(), is_end=parser.is_complete)
        elif parser.is_streamed and self._is_full(parser):
            cast("asyncio.Transport", self._transport).pause_reading()

    def _expects(self, parser: ResponseParser) -> bool:
        """Return whether more of a response is to come."""
        return self._response is not None and (not self._response.done() or parser.is_streamed)

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is in flight.

        1. A refusal that does not say how long it is ends with the connection: it is complete.
        2. No byte has come on a kept connection: the server had closed it before the request, which may be resent.
        3. In any other case the response is lost.
        """
        if self._receiver is not None:
            self._receiver.lose(exc)
        parser = self._parser
        if parser is not None and exc is None and parser.ends_with_connection:
            self._settle(None)
        elif parser is not None and not parser.has_begun:
            self._settle(self._explain_silence(exc))
        elif parser is not None and not parser.is_complete:
            where = "in the middle of its response" if parser.has_headers else "without a response"
            self._settle(Unreachable("ConnectionLost", str(exc or f"the server closed the connection {where}")))
        self._on_lost(self)

    async def _write_in_pieces(self, transport: asyncio.Transport, head: bytes, body: bytes) -> bool:
        """Write a large request as the server reads it; return whether all of it was written before the response.

        A transport keeps what it cannot send: under TLS it would keep the whole body for good.
        """
        transport.write(head)
        unsent = memoryview(body)
        while unsent and await self._can_write():
            piece, unsent = unsent[:PIECE_BYTES], unsent[PIECE_BYTES:]
            transport.write(piece)
            if self._in_flight is not None:
                self._in_flight.note_sent()
        return not unsent

    async def _write_from(self, transport: asyncio.Transport, head: bytes, pipe: Pipe) -> bool:
        """Write a request whose body comes piece by piece; return whether all was written before the response."""
        transport.write(head)
        self._pipe = pipe
        last = await pipe.send(transport, self._in_flight, is_paused=self._is_paused)
        if not last or not self._is_awaited():
            return False
        transport.write(last)
        return True

    async def _can_write(self) -> bool:
        """Wait until the server has read enough; return whether it still waits for more."""
        while self._is_paused and self._is_awaited():
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
        return self._is_awaited()

    def _is_awaited(self) -> bool:
        """Return whether the server has neither responded nor left."""
        return self._response is not None and not self._response.done() and self.is_open

    def _explain_silence(self, exc: Exception | None) -> Unreachable:
        words = str(exc or "the server closed the connection without a response")
        was_there = self._pipe is not None and self._pipe.passed_bytes > HEARD_BYTES
        return (StaleConnection if self._is_kept and not was_there else Unreachable)("ConnectionLost", words)

    def _settle(self, error: ObjectError | None) -> None:
        """End the wait for the response, that of the writer, and that for more of a streamed body."""
        if self._response is not None and not self._response.done():
            if error is None:
                self._response.set_result(None)
            else:
                self._response.set_exception(error)
        elif error is not None and self._failure is None:
            self._failure = error
            if self._sink is not None:
                self._sink.fail(error)
        self.wake()
        self._wake_writer()
        if self._pipe is not None:
            self._pipe.stop()

    def _wake_writer(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
