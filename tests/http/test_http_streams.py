"""Bodies that pass piece by piece: none that was cut off passes for a whole one, and the reader sets the pace."""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from rowferry.errors import Cancelled, CutOff, ObjectError, ServerFault, Throttled, TimedOut, Unreachable
from rowferry.http import deadlines, event_loop
from rowferry.http.connection import UNREAD_BYTES
from rowferry.http.descriptors import Descriptors
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request, put_object
from rowferry.s3.responses import Response
from support.processes.processes import wait_for
from support.s3.clients import GET, facing, opened, side_of
from support.s3.request_clock import RequestClock, stop_request_clock
from support.s3.said import OK, connections_of, say
from support.s3.stand_in import Behaviour, StandIn, answer, hang_up

STREAM = replace(GET, stream_above=10)
BODY = bytes(range(256)) * 8192
"""2 MiB: more than both ends' buffers hold."""
LARGE = BODY * 16


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> RequestClock:
    return stop_request_clock(monkeypatch)


def run(coroutine: Any) -> Any:
    return event_loop.run(coroutine, timedelta(seconds=60))


async def read(client: ObjectClient, request: Request = STREAM) -> bytes:
    """Read a streamed body to its end."""
    response = await client.send(request)
    assert response.stream is not None
    assert response.body == b""
    try:
        return await response.stream.read_all()
    finally:
        response.stream.close()


def stop_after(sent: bytes, length: int) -> Behaviour:
    return say(OK + b"Content-Length: %d\r\n\r\n" % length + sent, close=True)


class Pieces:
    """A body that comes as a test wants it."""

    def __init__(self, *pieces: bytes | ObjectError, length: int | None = None) -> None:
        self._pieces = pieces
        self._left: list[bytes | ObjectError] = []
        self._woken: asyncio.Event | None = None
        self.length = sum(len(piece) for piece in pieces if isinstance(piece, bytes)) if length is None else length
        self.opened = 0
        self.taken = 0

    async def open(self) -> None:
        self.opened += 1
        self._woken = asyncio.Event()
        self._left = list(self._pieces)

    async def read(self) -> Sequence[bytes]:
        await asyncio.sleep(0)
        if not self._left:
            assert self._woken is not None
            await self._woken.wait()
            return []
        piece = self._left.pop(0)
        if isinstance(piece, ObjectError):
            raise piece
        self.taken += len(piece)
        return [piece]

    def wake(self) -> None:
        assert self._woken is not None
        self._woken.set()


def put(source: Pieces, *, if_none_match: bool = False) -> Request:
    return replace(put_object("k", b"", if_none_match=if_none_match), source=source)


class Receiver:
    """Takes a request's body and responds; keeps what came."""

    def __init__(self, response: bytes = OK + b"Content-Length: 0\r\n\r\n") -> None:
        self._response = response
        self.bodies: list[bytes] = []

    def take(self, length: int) -> Behaviour:
        def behave(connection: socket.socket) -> None:
            body = b""
            while len(body) < length and (some := connection.recv(1 << 20)):
                body += some
            self.bodies.append(body)
            if len(body) == length:
                connection.sendall(self._response)

        return behave


@contextmanager
def receiving(*behaviours: Behaviour, **settings: Any) -> Iterator[tuple[ObjectClient, StandIn]]:
    """A client of a server that responds at the end of the headers, or reads the body itself."""
    with StandIn(*behaviours, reads_bodies=False) as server, opened(side_of(server), **settings) as client:
        yield client, server


@pytest.mark.parametrize("size", [11, 70_000, len(BODY)])
def test_a_streamed_body_is_what_was_sent_and_its_connection_is_kept(size: int) -> None:
    with facing(answer(200, BODY[:size], ETag="e")) as (client, server):
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


def test_a_streamed_body_may_be_longer_than_any_that_is_kept() -> None:
    with facing(answer(200, BODY), max_body_bytes=100) as (client, _):
        assert run(read(client)) == BODY


def test_a_streamed_body_that_is_cut_off_is_none() -> None:
    with facing(stop_after(b"x" * 50, 51)) as (client, _), pytest.raises(Unreachable, match="in the middle"):
        run(read(client))


def test_what_comes_after_a_streamed_body_does_not_pass_for_the_next_response() -> None:
    surplus = OK + b"Content-Length: 1\r\n\r\nx"
    with facing(say(OK + b"Content-Length: 11\r\n\r\n" + b"y" * 11 + surplus), answer(200, b"z")) as (client, server):
        assert run(read(client)) == b"y" * 11
        assert run(client.send(GET)).body == b"z"
        assert connections_of(server) == 2


def test_a_server_is_not_read_from_faster_than_the_reader_takes_it() -> None:
    sent = 0

    def send_slowly(connection: socket.socket) -> None:
        nonlocal sent
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(LARGE))
        for begin in range(0, len(LARGE), 65536):
            connection.sendall(LARGE[begin : begin + 65536])
            sent = begin

    async def look() -> int:
        response = await client.send(STREAM)
        stream = response.stream
        assert stream is not None
        try:
            connection, parser = stream._connection, stream._connection._parser
            assert parser is not None
            while connection._transport.is_reading() and parser.buffered_bytes < len(LARGE):  # type: ignore[union-attr]
                await asyncio.sleep(0.01)
            held = parser.buffered_bytes
            assert await stream.read_all() == LARGE
            return held
        finally:
            stream.close()

    with facing(send_slowly) as (client, _):
        assert UNREAD_BYTES <= run(look()) <= 4 * UNREAD_BYTES


def test_a_reader_that_leaves_closes_the_connection() -> None:
    async def leave(client: ObjectClient) -> None:
        response = await client.send(STREAM)
        assert response.stream is not None
        response.stream.close()
        response.stream.close()

    with facing(answer(200, BODY), answer(200, b"x")) as (client, server):
        run(leave(client))
        assert run(client.send(GET)).body == b"x"
        assert connections_of(server) == 2
        assert not client._pool._streaming


def test_a_body_that_stops_coming_is_given_up_at_the_deadline(clock: RequestClock) -> None:
    def stop(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Length: 99\r\n\r\nx")
        connection.recv(1)

    with facing(stop) as (client, _):
        reading = event_loop.submit(read(client))
        wait_for(lambda: client._pool._streaming)
        wait_for(lambda: clock.move(91) or reading.done())
        with pytest.raises(TimedOut, match="the rest of a body") as caught:
            reading.result()
    assert (caught.value.side, caught.value.operation) == ("production", "GetObject")


@pytest.mark.parametrize("end", ["cut off", "closed"])
def test_readers_end_with_their_client(end: str) -> None:
    def stop(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Length: 99\r\n\r\nx")
        connection.recv(1)

    with facing(stop) as (client, server):
        reading = event_loop.submit(read(client))
        wait_for(lambda: server.requests)
        wait_for(lambda: client._pool._streaming)
        if end == "closed":
            client.close()
        else:
            event_loop.call_soon(client.cut_off, CutOff("Silent", "as told"))
        with pytest.raises(Cancelled if end == "closed" else CutOff):
            reading.result(10)


def test_a_reader_that_comes_late_is_told_why_its_client_was_cut_off() -> None:
    async def read_late(client: ObjectClient) -> None:
        response = await client.send(STREAM)
        assert response.stream is not None
        client.cut_off(CutOff("Silent", "as told"))
        while client._pool._open:
            await asyncio.sleep(0)
        try:
            await response.stream.read_all()
        finally:
            response.stream.close()

    with facing(stop_after(b"x", 99)) as (client, _), pytest.raises(CutOff):
        run(read_late(client))


def test_who_reads_one_body_may_send_another_request_over_a_pool_of_one() -> None:
    async def read_beside() -> bytes:
        response = await client.send(STREAM)
        assert response.stream is not None
        try:
            return (await client.send(GET)).body + await response.stream.read_all()
        finally:
            response.stream.close()

    with facing(answer(200, b"0123456789a"), answer(200, b"x"), max_in_flight=1) as (client, _):
        assert run(read_beside()) == b"x0123456789a"


def test_a_closed_stream_leaves_the_next_response_on_its_connection_alone() -> None:
    async def read_two() -> bytes:
        first = (await client.send(STREAM)).stream
        assert first is not None
        assert await first.read_all() == b"0123456789a"
        first.close()
        second = (await client.send(STREAM)).stream
        assert second is not None
        try:
            assert second._connection is first._connection
            assert await first.read() == []
            loop.call_soon(first.wake)
            loop.call_later(0.2, event.set)
            return await second.read_all()
        finally:
            second.close()

    def send_late(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Length: 12\r\n\r\nearly ")
        event_loop.run(asyncio.wait_for(event.wait(), 10))
        connection.sendall(b"late  ")

    loop, event = run(get_loop()), asyncio.Event()
    with facing(answer(200, b"0123456789a"), send_late) as (client, _):
        assert run(read_two()) == b"early late  "


async def get_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


@pytest.mark.parametrize("is_sending", [False, True])
def test_streams_that_use_up_the_descriptors_do_not_wait_for_one_another(is_sending: bool) -> None:
    """Who holds a connection may need another: one is left, or is opened, that nobody holds for long."""

    class Asking(Pieces):
        async def read(self) -> Sequence[bytes]:
            await client.send(GET)
            return await super().read()

    async def read_beside() -> None:
        if is_sending:
            await client.send(put(Asking(b"abc")))
            return
        response = await client.send(STREAM)
        assert response.stream is not None
        try:
            await client.send(GET)
        finally:
            response.stream.close()

    put_or_get = {"PUT": Receiver().take(3), "GET": answer(200, b"x" if is_sending else BODY)}
    deadline = timedelta(seconds=30)
    with receiving(max_in_flight=1, deadline=deadline) as (client, server):
        server.judging(lambda head: put_or_get[head.partition(" ")[0]])
        client._pool._descriptors = Descriptors()
        client._pool._descriptors.max_used = 1
        run(read_beside())


def test_a_body_is_sent_piece_by_piece_with_its_length() -> None:
    receiver, source = Receiver(), Pieces(BODY[:7], BODY[7:900_000], BODY[900_000:])
    with receiving(receiver.take(len(BODY))) as (client, server):
        for _ in range(2):
            assert run(client.send(put(source))).status == 200
        assert connections_of(server) == 1
    assert receiver.bodies == [BODY, BODY]
    assert f"Content-Length: {len(BODY)}\r\n" in server.requests[0]
    assert "UNSIGNED-PAYLOAD" in server.requests[0]


def test_a_body_whose_source_fails_is_never_whole_and_the_error_is_the_sources() -> None:
    receiver = Receiver()
    lost = Unreachable("ConnectionLost", "the source is away")
    lost.side, lost.operation = "legacy", "GetObject"
    with receiving(receiver.take(100), answer(200, b"x")) as (client, server):
        with pytest.raises(Unreachable) as caught:
            run(client.send(put(Pieces(b"x" * 99, lost, length=100))))
        assert (caught.value.side, caught.value.operation) == ("legacy", "GetObject")
        wait_for(lambda: receiver.bodies)
        assert receiver.bodies == [b"x" * 99]
        assert run(client.send(GET)).body == b"x"
        assert connections_of(server) == 2


def test_a_body_that_is_refused_before_it_was_sent_is_not_read_on() -> None:
    source = Pieces(b"x" * 10, length=10**9)
    with receiving(say(b"HTTP/1.1 503 Slow\r\nContent-Length: 0\r\n\r\n"), answer(200, b"x")) as (client, server):
        with pytest.raises(Throttled):
            run(client.send(put(source)))
        assert run(client.send(GET)).body == b"x"
        assert connections_of(server) == 2


@pytest.mark.parametrize("streams", [True, False])
def test_a_success_before_the_body_was_sent_is_none(streams: bool) -> None:
    """The server cannot have the object: it would be the beginning of it."""
    early = say(OK + b"Content-Length: 0\r\nETag: e\r\n\r\n")
    request = put(Pieces(b"x" * 10, length=10**9)) if streams else put_object("k", LARGE * 4, if_none_match=False)
    with receiving(early, answer(200, b"x")) as (client, server):
        with pytest.raises(ServerFault, match="before"):
            run(client.send(request))
        assert run(client.send(GET)).body == b"x"
        assert connections_of(server) == 2


def test_a_client_that_is_cut_off_while_a_body_is_begun_sends_nothing() -> None:
    class CuttingOff(Pieces):
        async def open(self) -> None:
            await super().open()
            client.cut_off(CutOff("Silent", "as told"))

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


def test_a_server_that_does_not_read_a_body_is_given_up_at_the_deadline(clock: RequestClock) -> None:
    def wait_for_the_end(connection: socket.socket) -> None:
        ended.wait(100)
        connection.close()

    ended, source = Event(), Pieces(*[BODY] * 64)
    with receiving(wait_for_the_end) as (client, _):
        sending = event_loop.submit(client.send(put(source)))
        wait_for(lambda: any(connection._drained for connection in client._pool._open))
        wait_for(lambda: clock.move(91) or sending.done())
        ended.set()
        with pytest.raises(TimedOut) as caught:
            sending.result()
    assert (caught.value.operation, source.taken < source.length) == ("PutObject", True)


def test_a_server_owes_no_response_while_the_body_is_awaited_from_elsewhere(clock: RequestClock) -> None:
    class Late(Pieces):
        async def read(self) -> Sequence[bytes]:
            await clock.moved(91)
            return await super().read()

    receiver = Receiver()
    with receiving(receiver.take(3)) as (client, _):
        assert run(client.send(put(Late(b"abc")))).status == 200


def test_a_body_that_ends_too_early_is_never_whole() -> None:
    class Short(Pieces):
        async def read(self) -> Sequence[bytes]:
            return await super().read() if self._left else []

    receiver = Receiver()
    with receiving(receiver.take(4)) as (client, _):
        with pytest.raises(ServerFault):
            run(client.send(put(Short(b"abc", length=4))))
        wait_for(lambda: receiver.bodies)
    assert receiver.bodies == [b"abc"]


def test_a_cancelled_request_ends_its_body_and_its_connection() -> None:
    receiver, source = Receiver(), Pieces(b"abc", length=100)
    with receiving(receiver.take(100)) as (client, _):
        sending = event_loop.submit(client.send(put(source)))
        wait_for(lambda: source.taken)
        sending.cancel()
        wait_for(lambda: receiver.bodies)
        assert receiver.bodies == [b"abc"]
        wait_for(lambda: client.waiting_since is None)


SLOW = [BODY[:16384]] * 32
"""At 3 s each they take 96 s: more than the one deadline of 90 s of these tests, and less than that and 64 KiB/s."""


def test_a_streamed_body_may_come_slowly_as_long_as_it_comes(
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


def test_a_streamed_body_may_be_sent_slowly_as_long_as_it_goes(
    clock: RequestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Pieces):
        async def read(self) -> Sequence[bytes]:
            await clock.moved(3)
            return await super().read()

    receiver = Receiver()
    monkeypatch.setattr(deadlines, "LONGEST", 1)
    with receiving(receiver.take(32 * 16384)) as (client, _):
        assert run(client.send(put(Slow(*SLOW)))).status == 200


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
