"""HTTP/1.1 on one connection to one server: a request is written, its answer is read, then comes the next.

Everything here happens on the event-loop thread.
"""

import asyncio
from typing import Protocol, cast

from rowferry.errors import Cancelled, ObjectError, Unreachable
from rowferry.http.parser import AnswerReader

PIECE_BYTES = 256 * 1024
"""How much of a body is written at once."""


class Listener(Protocol):
    """Who is told what comes of a request, on the event-loop thread: `on_answer` or `on_failure`, once."""

    def on_sign_of_life(self) -> None:
        """Take note that an answer has begun, or has gone on."""
        ...

    def on_answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Take an HTTP answer of any status."""
        ...

    def on_failure(self, error: ObjectError) -> None:
        """Take note that no answer comes, and why."""
        ...


class Call:
    """One request, ready to be written, on its way to its answer."""

    __slots__ = ("body", "carrier", "head", "is_head", "is_open", "listener", "max_body_bytes", "may_be_resent")

    def __init__(self, head: bytes, body: bytes, listener: Listener, *, is_head: bool, max_body_bytes: int) -> None:
        """`head` and `body` are the request's bytes; `is_head`: the answer has no body, whatever its headers say."""
        self.head = head
        self.body = body
        self.listener = listener
        self.is_head = is_head
        self.max_body_bytes = max_body_bytes
        self.carrier: Connection | None = None
        """The connection that it is written to."""
        self.is_open = True
        """Whether its listener still waits."""
        self.may_be_resent = True
        """Whether it is sent again where a kept connection ends before a byte of its answer."""

    def answer(self, reader: AnswerReader) -> None:
        """End with an answer, unless it has ended."""
        if self._close():
            self.listener.on_answer(reader.status, reader.headers, reader.take_body())

    def fail(self, error: ObjectError) -> None:
        """End without one, unless it has ended."""
        if self._close():
            self.listener.on_failure(error)

    def give_up(self) -> None:
        """Stop waiting for the answer; the connection that it would have come on is closed."""
        if self.is_open and self.carrier is not None:
            self.carrier.drop()
        self.fail(Cancelled("Cancelled", "the request was given up"))

    def _close(self) -> bool:
        was_open, self.is_open = self.is_open, False
        self.carrier, self.body = None, b""
        return was_open


class Keeper(Protocol):
    """Who keeps connections between requests."""

    def free(self, connection: "Connection") -> None:
        """Take back one that may be used again."""
        ...

    def lose(self, connection: "Connection") -> None:
        """Forget one that has ended."""
        ...

    def resend(self, call: Call) -> None:
        """Send a call on a new connection: the kept one had ended before it was written, as far as anybody can tell."""
        ...


class Connection(asyncio.Protocol):
    """One connection, with one call at a time."""

    def __init__(self, keeper: Keeper) -> None:
        """Belong to a keeper, who is told when the connection is free again, and when it is lost."""
        self._keeper = keeper
        self._transport: asyncio.Transport | None = None
        self._call: Call | None = None
        self._reader: AnswerReader | None = None
        self._unsent = memoryview(b"")
        self._is_paused = False
        self._is_reused = False
        """Whether it has brought an answer before."""
        self.free_since = 0.0
        """When its keeper got it back, by the loop's clock."""

    @property
    def is_usable(self) -> bool:
        """Return whether a request may be written to it."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, call: Call) -> None:
        """Write a request and wait for its answer."""
        assert self._transport is not None
        self._call, call.carrier = call, self
        self._reader = AnswerReader(is_head=call.is_head, max_body_bytes=call.max_body_bytes)
        self._transport.write(call.head)
        if call.body:
            self._unsent = memoryview(call.body)
            self._write_on()

    def drop(self) -> None:
        """Close at once, whatever is under way."""
        self._let_go()
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        """Write no more for now: the server is slower than we are."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Write on."""
        self._is_paused = False
        self._write_on()

    def data_received(self, data: bytes) -> None:
        """Read on; what comes without having been asked for ends the connection."""
        call, reader = self._call, self._reader
        if call is None or reader is None:
            self.drop()
            return
        try:
            reader.feed(data)
        except ObjectError as error:
            self.drop()
            call.fail(error)
            return
        if reader.has_headers:
            call.listener.on_sign_of_life()
        if reader.is_complete:
            self._finish(call, reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """End what was under way: well, where the end of the connection is the end of the body."""
        call, reader = self._call, self._reader
        self._let_go()
        self._keeper.lose(self)
        if call is None or reader is None:
            return
        if exc is None and reader.ends_with_connection:
            call.answer(reader)
        elif self._is_reused and call.may_be_resent and not reader.has_begun:
            call.carrier = None
            self._keeper.resend(call)
        else:
            middle = "in the middle of its answer" if reader.has_headers else "without an answer"
            call.fail(Unreachable("ConnectionLost", str(exc or f"the server closed the connection {middle}")))

    def _finish(self, call: Call, reader: AnswerReader) -> None:
        """Be free again before the answer is handed over: whoever takes it sends the next request at once."""
        # Who refuses a request may have left its body unread: the next request must not stand behind the rest of it.
        has_read_all = not call.body or (reader.status < 300 and not self._unsent)
        self._let_go()
        self._is_reused = True
        if reader.leaves_connection_usable and has_read_all:
            self._keeper.free(self)
        else:
            self.drop()
        call.answer(reader)

    def _let_go(self) -> None:
        """Forget the call and what was read for it."""
        if self._reader is not None:
            self._reader.close()
        self._call = self._reader = None
        self._unsent = memoryview(b"")

    def _write_on(self) -> None:
        """Write as much of the body as the transport takes without keeping it: under TLS it would keep it for good."""
        while self._unsent and not self._is_paused and self._transport is not None:
            piece, self._unsent = self._unsent[:PIECE_BYTES], self._unsent[PIECE_BYTES:]
            self._transport.write(piece)
