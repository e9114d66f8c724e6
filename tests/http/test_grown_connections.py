"""Under TLS the buffers of a connection keep the size that a body gave them: no more connections grow than have to."""

import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from msgspec.structs import replace

from rowferry.http import event_loop
from rowferry.http.pool import Pool
from rowferry.http.stream import BodyStream
from rowferry.s3.client import ObjectClient
from support.processes.processes import wait_for
from support.s3.clients import GET, HEAD, WAIT_SECONDS, ask, begin, opened, side_of
from support.s3.stand_in import Behaviour, StandIn, answer
from support.s3.tls import Authority, serving_context

STREAM = replace(GET, stream_above=0)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    authority = Authority(tmp_path, "authority")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.bundle))
    return authority


class HeldHead:
    """The answer to a HEAD, which comes when it is let go."""

    def __init__(self) -> None:
        self.asked, self.may_go = Event(), Event()

    def __call__(self, connection: socket.socket) -> None:
        self.asked.set()
        assert self.may_go.wait(WAIT_SECONDS)
        answer(200)(connection)

    @contextmanager
    def under_way(self, client: ObjectClient) -> Iterator[None]:
        """Send a HEAD, and let it go in the end."""
        looking = begin(client, HEAD)
        assert self.asked.wait(WAIT_SECONDS)
        yield
        self.may_go.set()
        assert looking.result(WAIT_SECONDS).error is None


@contextmanager
def facing(authority: Authority, *heads: Behaviour) -> Iterator[tuple[ObjectClient, Pool]]:
    """A client, with its pool, of a TLS server that has objects of one byte and answers each HEAD as told."""
    server = StandIn(tls=serving_context(authority.sign("server")))
    left = deque(heads)
    server.judging(lambda asked: left.popleft() if asked.startswith("HEAD") else answer(200, b"x"))
    with server, opened(side_of(server)) as client:
        yield client, client._pool


def begin_body(client: ObjectClient) -> BodyStream:
    stream = event_loop.run(client.send(STREAM), timedelta(seconds=WAIT_SECONDS)).stream
    assert stream is not None
    return stream


def end_body(stream: BodyStream) -> None:
    async def end() -> None:
        await stream.read_all()
        stream.close()

    event_loop.run(end(), timedelta(seconds=WAIT_SECONDS))


def test_a_head_leaves_the_connection_that_has_grown_to_the_next_body(authority: Authority) -> None:
    held = HeldHead()
    with facing(authority, answer(200), answer(200), held) as (client, pool):
        stream = begin_body(client)
        ask(client, HEAD)
        end_body(stream)
        ask(client, HEAD)  # now the one that has not grown was used last
        end_body(begin_body(client))
        with held.under_way(client):
            end_body(begin_body(client))
        assert (len(pool._open), len(pool._grown)) == (2, 1)


def test_no_more_connections_that_have_grown_are_kept_than_bodies_passed_at_once(authority: Authority) -> None:
    held = HeldHead()
    with facing(authority, held) as (client, pool):
        end_body(begin_body(client))
        with held.under_way(client):
            end_body(begin_body(client))
            wait_for(lambda: len(pool._open) == 1)
        assert len(pool._open) == len(pool._grown) == 1
