"""Bodies that pass piece by piece: none that was cut off passes for a whole one, and the reader sets the pace."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from threading import Event
from typing import Any, cast

import pytest
from msgspec.structs import replace

from rowferry.errors import Cancelled, CutOff, ObjectError, ServerFault, Throttled, TimedOut, Unreachable
from rowferry.http import deadlines, event_loop
from rowferry.http.connection import UNREAD_BYTES
from rowferry.http.descriptors import Descriptors
from rowferry.http.pipe import Pipe
from rowferry.http.stream import BodyStream
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request, put_object
from rowferry.s3.responses import Response
from support.processes.processes import wait_for
from support.s3.clients import GET, facing, opened, side_of
from support.s3.request_clock import RequestClock
from support.s3.said import OK, connections_of, say
from support.s3.stand_in import Behaviour, StandIn, answer, hang_up

STREAM = replace(GET, stream_above=10)
BODY = bytes(range(256)) * 8192
"""2 MiB: more than both ends' buffers hold."""
LARGE = BODY * 16


SLOW = [BODY[:16384]] * 32
"""At 3 s each they take 96 s: more than the one deadline of 90 s of these tests, and less than that and 64 KiB/s."""


def run(coroutine: Any) -> Any:
    return event_loop.run(coroutine, timedelta(seconds=60))


@asynccontextmanager
async def streamed(client: ObjectClient) -> AsyncIterator[BodyStream]:
    """A body that is to be read, and is closed in the end."""
    response = await client.send(STREAM)
    assert (response.stream is None, response.body) == (False, b"")
    stream = cast("BodyStream", response.stream)
    try:
        yield stream
    finally:
        stream.close()


async def read(client: ObjectClient) -> bytes:
    """Read a streamed body to its end."""
    async with streamed(client) as stream:
        return await stream.read_all()


def stop_after(sent: bytes, length: int) -> Behaviour:
    return say(OK + b"Content-Length: %d\r\n\r\n" % length + sent, close=True)


class Pieces(Pipe):
    """A body that comes as a test wants it."""

    def __init__(self, *pieces: bytes, length: int | None = None) -> None:
        size = sum(map(len, pieces))
        super().__init__(size if length is None else length)
        self._pieces = pieces
        self.opened = 0
        self.taken = 0

    async def ask(self) -> Any:
        self.opened += 1
        self.taken = 0
        return self

    async def pass_on(self, pipe: Pipe) -> bytes:
        for piece in self._pieces:
            await self.wait()
            self.taken += len(piece)
            if self.taken == self.length:
                return piece
            pipe.write(piece)
        while not self.is_stopped:
            await asyncio.sleep(0.001)
        return b""

    async def wait(self) -> None:
        """Wait for the next piece."""
        await asyncio.sleep(0)

    def close(self) -> None: ...


def put(source: Pieces, *, if_none_match: bool = False) -> Request:
    return replace(put_object("k", b"", if_none_match=if_none_match), source=source)


class Receiver:
    """Takes a request's body and responds; keeps what came."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def take(self, length: int) -> Behaviour:
        def behave(connection: socket.socket) -> None:
            body = b""
            while len(body) < length and (some := connection.recv(1 << 20)):
                body += some
            self.bodies.append(body)
            if len(body) == length:
                connection.sendall(OK + b"Content-Length: 0\r\n\r\n")

        return behave


@contextmanager
def receiving(*behaviours: Behaviour, **settings: Any) -> Iterator[tuple[ObjectClient, StandIn]]:
    """A client of a server that responds at the end of the headers, or reads the body itself."""
    with StandIn(*behaviours, reads_bodies=False) as server, opened(side_of(server), **settings) as client:
        yield client, server


@pytest.mark.parametrize("size", [11, 70_000, len(BODY)])
def test_a_streamed_body_is_what_was_sent_however_long_and_its_connection_is_kept(size: int) -> None:
    with facing(answer(200, BODY[:size], ETag="e"), max_body_bytes=10) as (client, server):
        assert [run(read(client)) == BODY[:size] for _ in range(3)] == [True] * 3
        assert connections_of(server) == 1


def test_a_body_is_whole_however_its_bytes_come() -> None:
    head = OK + b"Content-Length: 20\r\nETag: e\r\n\r\n"
    message = head + b"\r\n\r\n4567890abc\r\n\r\nzz"

    def dribble(connection: socket.socket) -> None:
        begin = 0
        for end in (len(head) - 1, len(head) + 3, len(head) + 11, len(message)):
            connection.sendall(message[begin:end])
            event_loop.run(asyncio.sleep(0.02))  # lest they come together
            begin = end

    with facing(dribble) as (client, server):
        assert run(read(client)) == message[len(head) :]
        assert run(client.send(GET)).body == message[len(head) :]
        assert connections_of(server) == 1


def test_small_chunked_and_refused_bodies_are_not_streamed() -> None:
    chunked = say(OK + b"Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n")
    head = say(OK + b"Content-Length: 11\r\n\r\n")  # a body without its length is held against it
    with facing(answer(200, b"0123456789"), chunked, head, answer(404, b"x" * 99)) as (client, server):
        for expected in (b"0123456789", b"01234567890"):
            response: Response = run(client.send(STREAM))
            assert (response.stream, response.body) == (None, expected)
        with pytest.raises(ObjectError):
            run(client.send(STREAM))
        assert connections_of(server) == 1


def test_a_streamed_body_that_is_cut_off_is_none_and_what_comes_after_one_is_no_response() -> None:
    with facing(stop_after(b"x" * 50, 51)) as (client, _), pytest.raises(Unreachable, match="in the middle"):
        run(read(client))
    surplus = OK + b"Content-Length: 1\r\n\r\nx"
    with facing(say(OK + b"Content-Length: 11\r\n\r\n" + b"y" * 11 + surplus), answer(200, b"z")) as (client, server):
        assert run(read(client)) == b"y" * 11
        assert run(client.send(GET)).body == b"z"
        assert connections_of(server) == 2


def test_a_server_is_not_read_from_faster_than_the_reader_takes_it() -> None:
    def send(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(LARGE))
        connection.sendall(LARGE)

    async def look() -> int:
        async with streamed(client) as stream:
            connection, parser = stream._connection, stream._connection._parser
            assert parser is not None
            while connection._transport.is_reading() and parser.buffered_bytes < len(LARGE):  # type: ignore[union-attr]
                await asyncio.sleep(0.01)
            held = parser.buffered_bytes
            assert await stream.read_all() == LARGE
            return held

    with facing(send) as (client, _):
        assert UNREAD_BYTES <= run(look()) <= 4 * UNREAD_BYTES


def test_a_reader_that_leaves_closes_the_connection() -> None:
    async def leave(client: ObjectClient) -> None:
        async with streamed(client) as stream:
            stream.close()

    with facing(answer(200, BODY), answer(200, b"x")) as (client, server):
        run(leave(client))
        assert run(client.send(GET)).body == b"x"
        assert connections_of(server) == 2
        assert not client._pool._streaming


def stop(connection: socket.socket) -> None:
    """Begin a body, and send no more."""
    connection.sendall(OK + b"Content-Length: 99\r\n\r\nx")
    connection.recv(1)


@pytest.mark.parametrize("end", [TimedOut, Cancelled, CutOff])
def test_readers_end_at_the_deadline_and_with_their_client(end: type[ObjectError], clock: RequestClock) -> None:
    with facing(stop) as (client, _):
        reading = event_loop.submit(read(client))
        wait_for(lambda: client._pool._streaming)
        if end is TimedOut:
            wait_for(lambda: clock.move(91) or reading.done())
        elif end is Cancelled:
            client.close()
        else:
            event_loop.call_soon(client.cut_off, CutOff("Silent", "as told"))
        with pytest.raises(end, match="the rest of a body" if end is TimedOut else None) as caught:
            reading.result(10)
    if end is TimedOut:
        assert (caught.value.side, caught.value.operation) == ("production", "GetObject")


def test_a_reader_that_comes_late_is_told_why_its_client_was_cut_off() -> None:
    async def read_late(client: ObjectClient) -> None:
        async with streamed(client) as stream:
            client.cut_off(CutOff("Silent", "as told"))
            while client._pool._open:
                await asyncio.sleep(0)
            await stream.read_all()

    with facing(stop_after(b"x", 99)) as (client, _), pytest.raises(CutOff):
        run(read_late(client))


def test_a_closed_stream_leaves_the_next_response_on_its_connection_alone() -> None:
    async def read_two() -> bytes:
        async with streamed(client) as first:
            assert await first.read_all() == b"0123456789a"
        async with streamed(client) as second:
            assert second._connection is first._connection
            assert await first.read() == []
            asyncio.get_running_loop().call_soon(first.wake)
            asyncio.get_running_loop().call_later(0.2, event.set)
            return await second.read_all()

    def send_late(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Length: 12\r\n\r\nearly ")
        assert event.wait(10)
        connection.sendall(b"late  ")

    event = Event()
    with facing(answer(200, b"0123456789a"), send_late) as (client, _):
        assert run(read_two()) == b"early late  "


@pytest.mark.parametrize("is_sending", [False, True])
def test_streams_that_use_up_the_descriptors_do_not_wait_for_one_another(is_sending: bool) -> None:
    """Who holds a connection may need another: one is left, or is opened, that nobody holds for long."""

    class Asking(Pieces):
        async def wait(self) -> None:
            await client.send(GET)

    async def read_beside() -> None:
        async with streamed(client):
            await client.send(GET)

    put_or_get = {"PUT": Receiver().take(3), "GET": answer(200, b"x" if is_sending else BODY)}
    with receiving(max_in_flight=1, deadline=timedelta(seconds=30)) as (client, server):
        server.judging(lambda head: put_or_get[head.partition(" ")[0]])
        client._pool._descriptors = Descriptors()
        client._pool._descriptors.max_used = 1
        run(client.send(put(Asking(b"abc"))) if is_sending else read_beside())


def test_a_body_is_sent_piece_by_piece_with_its_length() -> None:
    receiver, source = Receiver(), Pieces(BODY[:7], BODY[7:900_000], BODY[900_000:])
    with receiving(receiver.take(len(BODY))) as (client, server):
        for _ in range(2):
            assert run(client.send(put(source))).status == 200
        assert connections_of(server) == 1
    assert receiver.bodies == [BODY, BODY]
    assert f"Content-Length: {len(BODY)}\r\n" in server.requests[0]
    assert "UNSIGNED-PAYLOAD" in server.requests[0]


def test_a_body_whose_source_ends_too_early_is_never_whole() -> None:
    class Short(Pieces):
        async def pass_on(self, pipe: Pipe) -> bytes:
            pipe.write(b"x" * 99)
            return b""

    receiver = Receiver()
    with receiving(receiver.take(100), answer(200, b"x")) as (client, server):
        with pytest.raises(ServerFault):
            run(client.send(put(Short(length=100))))
        wait_for(lambda: receiver.bodies)
        assert receiver.bodies == [b"x" * 99]
        assert run(client.send(GET)).body == b"x"
        assert connections_of(server) == 2


ENDLESS = Pieces(b"x" * 10, length=10**9)
EARLY = {
    "a refusal": (b"HTTP/1.1 503 Slow\r\nContent-Length: 0\r\n\r\n", put(ENDLESS), Throttled),
    "a success": (OK + b"Content-Length: 0\r\nETag: e\r\n\r\n", put(ENDLESS), ServerFault),
    "a success, whole": (
        OK + b"Content-Length: 0\r\nETag: e\r\n\r\n", put_object("k", LARGE * 4, if_none_match=False), ServerFault
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EARLY)
def test_a_response_before_the_body_was_sent_ends_it_and_a_success_is_none(name: str) -> None:
    """The server cannot have the object: it would be the beginning of it."""
    early, request, error = EARLY[name]
    with receiving(say(early), answer(200, b"x")) as (client, server):
        with pytest.raises(error, match="before" if error is ServerFault else None):
            run(client.send(request))
        assert run(client.send(GET)).body == b"x"
        assert connections_of(server) == 2


def test_a_client_that_is_cut_off_while_a_body_is_begun_sends_nothing() -> None:
    class CuttingOff(Pieces):
        async def ask(self) -> Any:
            client.cut_off(CutOff("Silent", "as told"))
            return await super().ask()

    with receiving(answer(200), answer(200)) as (client, server):
        run(client.send(GET))
        with pytest.raises(CutOff):
            run(client.send(put(CuttingOff(b"abc"))))
        assert len(server.requests) == 1


def test_a_body_is_begun_anew_for_a_connection_that_had_been_closed() -> None:
    receiver, source = Receiver(), Pieces(BODY)
    with receiving(answer(200), hang_up, receiver.take(len(BODY))) as (client, _):
        run(client.send(GET))
        assert run(client.send(put(source, if_none_match=True))).status == 200
    assert (source.opened, receiver.bodies) == (2, [BODY])


class Slow(Pieces):
    """Each piece of it takes so many seconds."""

    def __init__(self, clock: RequestClock, seconds: float, *pieces: bytes) -> None:
        super().__init__(*pieces)
        self._clock, self._seconds = clock, seconds

    async def wait(self) -> None:
        await self._clock.moved(self._seconds)


def test_a_server_owes_no_response_while_the_body_is_awaited_from_elsewhere(clock: RequestClock) -> None:
    with receiving(Receiver().take(3)) as (client, _):
        assert run(client.send(put(Slow(clock, 91, b"abc")))).status == 200


def test_a_streamed_body_may_come_and_go_slowly_as_long_as_it_moves(
    clock: RequestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_slowly(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % (32 * 16384))
        for piece in SLOW:
            clock.move(3)
            connection.sendall(piece)

    monkeypatch.setattr(deadlines, "LONGEST", 1)
    with facing(send_slowly) as (client, _):
        assert run(read(client)) == b"".join(SLOW)
    with receiving(Receiver().take(32 * 16384)) as (client, _):
        assert run(client.send(put(Slow(clock, 3, *SLOW)))).status == 200


def test_a_whole_body_may_be_read_slowly_as_long_as_it_is_read(clock: RequestClock) -> None:
    """The deadline of 90 s is between two bytes that go, not between the first and the response."""

    def take_slowly(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        taken, began = 0, clock.now
        while taken < len(LARGE):
            taken += len(connection.recv(512 * 1024))
            while clock.now - began < 200 * taken / len(LARGE):
                clock.move(10)
        connection.sendall(OK + b"Content-Length: 0\r\n\r\n")

    with receiving(take_slowly) as (client, _):
        assert run(client.send(put_object("k", LARGE, if_none_match=False))).status == 200
