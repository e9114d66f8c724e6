"""Kept connections end without a word, and slow answers go on: neither is a failure."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowferry.errors import ServerFault, TimedOut, Unreachable
from rowferry.http import connect, deadlines
from rowferry.http.connect import Connector
from rowferry.http.connection import Connection
from rowferry.http.outbox import MANY, Outbox
from rowferry.http.parser import ResponseParser
from rowferry.http.pool import Pool
from support.processes.processes import wait_for
from support.s3.clients import COPY, HEAD, WAIT_SECONDS, ask, begin, facing
from support.s3.request_clock import RequestClock
from support.s3.said import OK, say
from support.s3.stand_in import StandIn, answer


class Transport:
    """Keeps what is written to it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_aborted = False

    def write(self, message: bytes) -> None:
        self.written.append(message)

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


def test_while_many_are_in_flight_the_requests_of_a_millisecond_are_written_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later: list[tuple[float, Callable[[], None]]] = []
    loop = SimpleNamespace(call_later=lambda seconds, callback: later.append((seconds, callback)))
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    outbox, transports = Outbox(), [Transport(), Transport()]
    outbox.busy = MANY
    for transport in transports:
        outbox.write(cast("asyncio.Transport", transport), b"GET")
    assert [transport.written for transport in transports] == [[], []]
    ((seconds, write_all),) = later
    assert 0 < seconds <= 0.001
    write_all()
    assert [transport.written for transport in transports] == [[b"GET"], [b"GET"]]


def test_a_response_to_a_request_that_was_not_written_yet_ends_the_connection() -> None:
    async def respond_early() -> Transport:
        outbox, transport = Outbox(), Transport()
        outbox.busy = MANY
        connection = Connection(outbox, lambda _: None)
        connection.connection_made(cast("asyncio.Transport", transport))
        parser = ResponseParser(is_head=False, max_body_bytes=9)
        exchange = asyncio.ensure_future(connection.exchange(b"GET", b"", parser))
        await asyncio.sleep(0)
        connection.data_received(OK + b"Content-Length: 1\r\n\r\nx")
        if transport.is_aborted:
            connection.connection_lost(None)
        with pytest.raises(Unreachable):
            await exchange
        async with asyncio.timeout(WAIT_SECONDS):
            while outbox.unwritten:
                await asyncio.sleep(0)
        return transport

    assert asyncio.run(respond_early()).written == []


def parse(head: bytes) -> ResponseParser:
    parser = ResponseParser(is_head=True, max_body_bytes=9)
    parser.feed(OK + head)
    return parser


def test_headers_of_up_to_256_kib_are_read() -> None:
    room = 256 * 1024 - len(OK + b"x-long: \r\n\r\n")
    assert parse(b"x-long: " + b"x" * room + b"\r\n\r\n").has_headers
    with pytest.raises(ServerFault, match="headers are longer"):
        parse(b"x-long: " + b"x" * (room + 1) + b"\r\n\r\n")


def test_metadata_of_several_lines_is_one_value_and_of_other_headers_the_last_line_counts() -> None:
    parser = parse(b"x-amz-meta-a: 1\r\nETag: e\r\nX-Amz-Meta-A: 2\r\nx-amz-meta-b: 3\r\netag: f\r\n\r\n")
    assert parser.headers == {"x-amz-meta-a": "1, 2", "etag": "f", "x-amz-meta-b": "3"}
    assert not parse(b"Connection: x-other\r\nConnection: Close\r\n\r\n").leaves_connection_usable


def test_a_copy_that_is_kept_alive_with_white_space_is_waited_for(clock: RequestClock) -> None:
    def copy_slowly(connection: socket.socket) -> None:
        connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(9):
            connection.sendall(b"1\r\n \r\n")
            wait_for(lambda: client.last_response == clock.now)
            clock.move(80)
        connection.sendall(b"1\r\nx\r\n0\r\n\r\n")

    with facing(copy_slowly) as (client, _):
        got = ask(client, COPY)
    assert (got.error, got.body.strip()) == (None, b"x")


def test_a_copy_that_falls_silent_in_the_middle_ends_at_the_deadline(clock: RequestClock) -> None:
    chunked = OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n"
    with facing(say(chunked)) as (client, _):
        copying = begin(client, COPY)
        wait_for(lambda: client.last_response)
        clock.move(91)
        assert isinstance(copying.result(WAIT_SECONDS).error, TimedOut)


def test_no_response_goes_on_for_ever(clock: RequestClock) -> None:
    def go_on(connection: socket.socket) -> None:
        connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"1\r\n \r\n")
            time.sleep(0.01)

    began, longest = clock.now, deadlines.LONGEST * 90
    with facing(go_on) as (client, _):
        copying = begin(client, COPY)
        while not copying.done() and clock.now < began + 2 * longest:
            wait_for(lambda: copying.done() or client.last_response == clock.now)
            clock.move(80)
        assert isinstance(copying.result(0).error, TimedOut)
    assert began + longest < clock.now <= began + longest + 2 * 80


def test_connections_are_asked_whether_they_are_still_there() -> None:
    with facing(answer(200)) as (client, _):
        ask(client, HEAD)
        (connection,) = client._pool._open
        assert connection._transport is not None
        connected = connection._transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


def test_losing_thousands_of_idle_connections_compares_none_with_the_others() -> None:
    class Counted(Connection):
        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = object.__hash__

    async def lose_all() -> None:
        unused: Any = None
        pool = Pool(unused, 5000)
        connections = [Counted(Outbox(), pool._forget) for _ in range(2000)]
        for connection in connections:
            pool._open.add(connection)
            pool._keep(connection)
        for connection in reversed(connections[:-1]):
            pool._forget(connection)
        assert len(pool._idle) == 1

    asyncio.run(lose_all())


def test_three_addresses_that_swallow_everything_do_not_hide_the_fourth(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as until:
        server = until.enter_context(StandIn(answer(200)))
        ports = [until.enter_context(swallowing()) for _ in range(3)]
        ports.append(server._listener.getsockname()[1])
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]

        async def find(_: Connector, __: object) -> list[Any]:
            return found[: connect.ADDRESSES_AT_ONCE]

        monkeypatch.setattr(Connector, "_find_addresses", find)
        client, _ = until.enter_context(facing(answer(200)))
        assert ask(client, HEAD).error is None
        assert len(server.requests) == 1


@contextmanager
def swallowing() -> Iterator[int]:
    """The port of a listener whose backlog is full, so that it answers no further attempt to connect."""
    with ExitStack() as until:
        listener = until.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filling = until.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
