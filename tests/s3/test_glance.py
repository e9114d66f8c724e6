"""A HEAD that takes no coroutine ends once, with what came, and leaves its connection to the next request."""

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from rowferry.errors import CutOff, ObjectError, ObjectNotFound, ServerFault, TimedOut, Unreachable
from rowferry.http import event_loop
from rowferry.s3.client import ObjectClient
from rowferry.s3.glance import Glance
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from support.processes.processes import wait_for
from support.s3.clients import HEAD, WAIT_SECONDS, ask, facing
from support.s3.request_clock import stop_request_clock
from support.s3.said import connections_of
from support.s3.stand_in import Behaviour, answer, babble, hang_up, keep_silent, reset

Ends = list[Response | ObjectError]


async def begin(client: ObjectClient, on_end: Callable[[Response | ObjectError], object]) -> Glance | None:
    def end(_request: Request, result: Response | ObjectError, _seconds: float) -> None:
        on_end(result)

    return client.glance("k", end)


def glance(client: ObjectClient) -> Response | ObjectError:
    """Look at an object and return how that ended."""
    ended: Future[Response | ObjectError] = Future()
    assert event_loop.run(begin(client, ended.set_result)) is not None
    return ended.result(WAIT_SECONDS)


def count_in_flight(client: ObjectClient) -> tuple[int, int]:
    """Return how many requests are watched, and on how many connections some are under way."""
    return len(client._deadlines._in_flight), client._pool._outbox.busy


def test_it_tells_the_headers_and_leaves_the_connection_to_the_next() -> None:
    with facing(answer(200), answer(200, ETag='"e"'), answer(200, ETag='"f"'), answer(200)) as (client, server):
        ask(client, HEAD)
        found = [glance(client), glance(client)]
        assert [each.etag for each in found if isinstance(each, Response)] == ["e", "f"]
        assert ask(client, HEAD).error is None
        assert (len(server.requests), connections_of(server)) == (4, 1)
        assert server.requests[1].startswith("HEAD /bucket/k HTTP/1.1")
        assert count_in_flight(client) == (0, 0)


NO_HEADERS = (
    (answer(404), ObjectNotFound),
    (answer(500), ServerFault),
    (hang_up, Unreachable),
    (reset, Unreachable),
    (babble, ServerFault),
)


@pytest.mark.parametrize(("end", "error"), NO_HEADERS)
def test_it_tells_why_there_are_no_headers(end: Behaviour, error: type[ObjectError]) -> None:
    with facing(answer(200), end, answer(200)) as (client, _):
        ask(client, HEAD)
        assert isinstance(glance(client), error)
        assert ask(client, HEAD).error is None
        assert count_in_flight(client) == (0, 0)


def test_it_ends_at_the_deadline_and_when_the_client_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stop_request_clock(monkeypatch)
    for error in (TimedOut, CutOff):
        with facing(answer(200), keep_silent) as (client, server):
            ask(client, HEAD)
            ended: Future[Response | ObjectError] = Future()
            assert event_loop.run(begin(client, ended.set_result)) is not None
            wait_for(lambda server=server: len(server.requests) == 2)
            if error is TimedOut:
                clock.move(91)
            else:
                event_loop.call_soon(client.cut_off, CutOff("CutOff", "gone"))
            assert isinstance(ended.result(WAIT_SECONDS), error)
            assert count_in_flight(client) == (0, 0)
    assert event_loop.run(begin(client, lambda _: None)) is None


def test_a_cancelled_one_says_nothing_and_leaves_nothing_behind() -> None:
    ends: Ends = []
    with facing(answer(200), keep_silent, answer(200)) as (client, server):
        ask(client, HEAD)
        under_way = event_loop.run(begin(client, ends.append))
        assert under_way is not None
        wait_for(lambda: len(server.requests) == 2)
        event_loop.call_soon(under_way.cancel)
        wait_for(lambda: count_in_flight(client) == (0, 0))
        assert ask(client, HEAD).error is None
        assert ends == []


def test_where_no_connection_is_idle_nothing_is_begun() -> None:
    with facing(answer(200)) as (client, server):
        assert event_loop.run(begin(client, lambda _: None)) is None
        assert not server.requests
