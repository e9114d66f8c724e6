"""What asks at the start asks over the client that works, and says what stands in the way."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event

import pytest

from rowferry.errors import AccessDenied, BucketNotFound, CutOff, ObjectError, SideFault, TimedOut, Unreachable
from rowferry.http import event_loop
from rowferry.plan import Side
from rowferry.s3.client import ObjectClient, check_bucket, open_object_client
from support.processes.processes import wait_for
from support.s3.clients import GET, HEAD, WAIT_SECONDS, ask, begin, side_of
from support.s3.stand_in import Behaviour, StandIn, answer, hang_up, keep_silent, refuse


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for side in ("LEGACY", "PRODUCTION"):
        monkeypatch.setenv(f"ROWFERRY_{side}_ACCESS_KEY_ID", "AK")
        monkeypatch.setenv(f"ROWFERRY_{side}_SECRET_ACCESS_KEY", "SK")


@contextmanager
def asking(*behaviours: Behaviour, at_once: int = 1) -> Iterator[tuple[ObjectClient, Side]]:
    with StandIn(*behaviours) as server:
        client = open_object_client(side_of(server), max_in_flight=at_once, deadline=timedelta(seconds=60))
        try:
            yield client, side_of(server)
        finally:
            client.close()


def test_the_bucket_is_asked_for_as_boto3_asks() -> None:
    with StandIn(answer(200)) as server:
        client = open_object_client(side_of(server))
        check_bucket(client, side_of(server))
        event_loop.run(client.probe(timedelta(seconds=60)))
        client.close()
    assert server.request_lines == ["HEAD /bucket HTTP/1.1"] * 2
    assert all("User-Agent: rowferry" in request for request in server.requests)


ELSEWHERE = r"is in eu-north-1: set production\.region to it"
REFUSALS: tuple[tuple[list[Behaviour], type[Exception], str | None], ...] = (
    ([answer(403), refuse(403, "NotForYou")], AccessDenied, "NotForYou"),  # a GET tells why
    ([answer(403), answer(200)], AccessDenied, None),
    ([answer(404)], BucketNotFound, None),
    ([hang_up], Unreachable, None),
    *(([answer(status, x_amz_bucket_region="eu-north-1")], SideFault, ELSEWHERE) for status in (301, 307, 400)),
)


@pytest.mark.parametrize(("behaviours", "error", "words"), REFUSALS)
def test_what_stands_in_the_way_of_a_bucket_is_said(
    behaviours: list[Behaviour], error: type[Exception], words: str | None
) -> None:
    with asking(*behaviours) as (client, side), pytest.raises(error, match=words):
        check_bucket(client, side)


@pytest.mark.parametrize("reply", [answer(200), answer(403), refuse(503, "SlowDown"), refuse(400, "ExpiredToken")])
def test_any_response_answers_a_probe_also_while_cut_off(reply: Behaviour) -> None:
    with asking(answer(200), reply) as (client, side):
        check_bucket(client, side)
        event_loop.call_soon(client.cut_off, CutOff("Silent", "the server does not answer"))
        event_loop.run(client.probe(timedelta(seconds=60)))
        assert isinstance(ask(client, HEAD).error, CutOff)


@pytest.mark.parametrize(("reply", "seconds", "expected"), [(keep_silent, 0.5, TimedOut), (hang_up, 60, Unreachable)])
def test_a_probe_without_a_response_says_so(reply: Behaviour, seconds: float, expected: type[ObjectError]) -> None:
    with asking(reply) as (client, _), pytest.raises(expected):
        event_loop.run(client.probe(timedelta(seconds=seconds)))


def test_cutting_off_ends_what_is_in_flight_each_with_its_own_error_and_a_later_request_is_sent() -> None:
    """An error says which request met it, and its traceback holds what that request had read."""
    arrived: list[socket.socket] = []

    def hear_and_keep_silent(connection: socket.socket) -> None:
        arrived.append(connection)
        keep_silent(connection)

    with asking(hear_and_keep_silent, hear_and_keep_silent, answer(200), at_once=2) as (client, _):
        waiting = [begin(client, request) for request in (HEAD, GET)]
        wait_for(lambda: len(arrived) == 2)
        event_loop.call_soon(client.cut_off, CutOff("Silent", "the server does not answer"))
        errors = [future.result(WAIT_SECONDS).error for future in waiting]
        assert [error.operation for error in errors if isinstance(error, CutOff)] == ["HeadObject", "GetObject"]
        event_loop.call_soon(client.cut_off, None)
        wait_for(lambda: ask(client, HEAD).error is None)


def test_closing_waits_for_no_event_loop_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a worker that stops would not deregister."""
    monkeypatch.setattr("rowferry.s3.client.CLOSE_WITHIN", timedelta(seconds=0.05))
    closed, was_closed = Event(), list[bool]()
    with asking(answer(200)) as (client, _):
        event_loop.call_soon(lambda: was_closed.append(closed.wait(60)))
        client.close()
        closed.set()
        event_loop.run(asyncio.sleep(0))
        assert was_closed == [True]
