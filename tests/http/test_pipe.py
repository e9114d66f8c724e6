"""A body that passes from one server to another: little of it is here at a time, and a torn one is never whole.

Each side answers for itself: the deadline of the one that is waited for runs, and its error names it.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from rowferry.errors import ObjectError, ServerFault, Throttled, TimedOut
from rowferry.http import event_loop
from rowferry.http.pipe import Pipe
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import get_object, put_object
from support.processes.processes import wait_for
from support.s3.clients import opened, side_of
from support.s3.request_clock import RequestClock
from support.s3.said import OK, connections_of, say
from support.s3.stand_in import Behaviour, StandIn, answer
from support.s3.tls import Authority, serving_context

READ = replace(get_object("legacy", "k"), stream_above=0)
BODY = bytes(range(256)) * 32768
"""8 MiB: more than the buffers of all sockets hold."""
WAIT_SECONDS = 60


class Passing(Pipe):
    """The body of a GET of the legacy side."""

    def __init__(self, legacy: ObjectClient, length: int) -> None:
        super().__init__(length)
        self._legacy = legacy
        self.noted = 0

    async def ask(self) -> Any:
        return (await self._legacy.send(READ)).stream

    def note(self, piece: bytes) -> None:
        self.noted += len(piece)


class Servers:
    """Two servers and their clients, over plain HTTP or TLS."""

    def __init__(self, legacy: StandIn, production: StandIn, clients: ExitStack) -> None:
        self.legacy, self.production = legacy, production
        self.read_by = clients.enter_context(opened(side_of(legacy, "legacy")))
        self.write_by = clients.enter_context(opened(side_of(production)))
        self.source = Passing(self.read_by, len(BODY))

    async def copy(self) -> int:
        try:
            return (
                await self.write_by.send(replace(put_object("k", b"", if_none_match=False), source=self.source))
            ).status
        finally:
            self.source.close()

    def run(self) -> int:
        return event_loop.run(self.copy(), timedelta(seconds=WAIT_SECONDS))


@contextmanager
def passing(legacy: Behaviour, production: Behaviour, tls: Any = None) -> Iterator[Servers]:
    with (
        StandIn(legacy, tls=tls) as reading,
        StandIn(production, reads_bodies=False, tls=tls) as writing,
        ExitStack() as clients,
    ):
        yield Servers(reading, writing, clients)


class Taker:
    """Takes a body, and responds once it is whole."""

    def __init__(self) -> None:
        self.body = b""

    def __call__(self, connection: socket.socket) -> None:
        self.body = b""
        while len(self.body) < len(BODY) and (some := connection.recv(256 * 1024)):
            self.body += some
        if len(self.body) == len(BODY):
            connection.sendall(OK + b"Content-Length: 0\r\n\r\n")


def send(sent: bytes, length: int = len(BODY)) -> Behaviour:
    return say(OK + b"Content-Length: %d\r\nETag: e\r\n\r\n" % length + sent, close=len(sent) < length)


@pytest.mark.parametrize("is_tls", [False, True])
def test_a_body_arrives_as_it_was_read_and_both_connections_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_tls: bool
) -> None:
    authority = Authority(tmp_path, "authority")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.bundle))
    taker = Taker()
    with passing(send(BODY), taker, serving_context(authority.sign("server")) if is_tls else None) as servers:
        for _ in range(3):
            servers.source.noted = 0
            assert (servers.run(), taker.body == BODY, servers.source.noted) == (200, True, len(BODY))
        once = 2 if is_tls else 1  # the stand-in keeps the socket below that of TLS as well
        assert (connections_of(servers.legacy), connections_of(servers.production)) == (once, once)


def test_the_source_waits_while_the_target_does_not_read() -> None:
    sent, may_go = [], Event()

    def send_all(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Length: %d\r\nETag: e\r\n\r\n" % (8 * len(BODY)))
        for _ in range(8):
            connection.sendall(BODY)
            sent.append(1)

    def take_late(connection: socket.socket) -> None:
        assert may_go.wait(WAIT_SECONDS)
        left = 8 * len(BODY)
        while left:
            left -= len(connection.recv(1 << 20))
        connection.sendall(OK + b"Content-Length: 0\r\n\r\n")

    with passing(send_all, take_late) as servers:
        servers.source.length *= 8
        copying = event_loop.submit(servers.copy())
        wait_for(lambda: any(connection._is_paused for connection in servers.write_by._pool._open))
        noted = servers.source.noted
        assert noted < 4 * len(BODY)
        assert len(sent) < 8
        may_go.set()
        assert copying.result(WAIT_SECONDS) == 200


@pytest.mark.parametrize(
    ("early", "error"),
    [
        (b"HTTP/1.1 503 Slow\r\nContent-Length: 0\r\n\r\n", Throttled),
        (OK + b"Content-Length: 0\r\nETag: e\r\n\r\n", ServerFault),
    ],
)
def test_a_target_that_answers_early_gets_no_more_and_both_connections_end(
    early: bytes, error: type[ObjectError]
) -> None:
    half = OK + b"Content-Length: %d\r\nETag: e\r\n\r\n" % len(BODY) + BODY[: len(BODY) // 2]
    with passing(say(half), say(early)) as servers:  # never whole: what is read to its end may be kept
        with pytest.raises(error) as caught:
            servers.run()
        assert (caught.value.side, caught.value.operation) == ("production", "PutObject")
        wait_for(lambda: not servers.write_by._pool._open and not servers.read_by._pool._open)


def stop(connection: socket.socket) -> None:
    """Begin the body, and send no more."""
    connection.sendall(OK + b"Content-Length: %d\r\nETag: e\r\n\r\n" % len(BODY) + BODY[:99])
    connection.recv(1)


@pytest.mark.parametrize("side", ["legacy", "production"])
def test_the_side_that_stops_is_given_up_at_its_deadline(side: str, clock: RequestClock) -> None:
    ended = Event()

    def wait(_: socket.socket) -> None:
        ended.wait(WAIT_SECONDS)

    behaviours = (stop, Taker()) if side == "legacy" else (send(BODY), wait)
    with passing(*behaviours) as servers:
        copying = event_loop.submit(servers.copy())
        if side == "legacy":
            wait_for(lambda: servers.source.noted)
            assert servers.write_by.waiting_since is None, "it owes nothing"
        else:
            wait_for(lambda: any(connection._is_paused for connection in servers.write_by._pool._open))
            assert servers.read_by.waiting_since is None, "it owes nothing"
        wait_for(lambda: clock.move(91) or copying.done())
        ended.set()
        with pytest.raises(TimedOut) as caught:
            copying.result(WAIT_SECONDS)
        assert caught.value.side == side


def test_a_source_that_was_paused_to_its_end_serves_the_next_request() -> None:
    """Its connection reads again, although the target had not read all when its last piece came."""
    may_go = Event()

    def take_late(connection: socket.socket) -> None:
        assert may_go.wait(WAIT_SECONDS)
        left = 700_000
        while left:
            left -= len(connection.recv(1 << 20))
        connection.sendall(OK + b"Content-Length: 0\r\n\r\n")

    async def look() -> bytes:
        return (await servers.read_by.send(get_object("legacy", "k"))).body

    small = answer(200, BODY[:700_000], ETag="e")
    with passing(small, take_late) as servers:
        servers.source.length = 700_000
        copying = event_loop.submit(servers.copy())
        event_loop.run(asyncio.sleep(0.2))
        may_go.set()
        assert copying.result(WAIT_SECONDS) == 200
        assert event_loop.run(look(), timedelta(seconds=WAIT_SECONDS)) == BODY[:700_000]
        assert connections_of(servers.legacy) == 1
