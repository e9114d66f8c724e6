"""What the hot path promises of every request: one answer, its own server, within bounds."""

import queue
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from clients import COPY, GET, HEAD, WAIT_SECONDS, ask, clients_of, facing, opened, side_of
from processes import wait_for
from rowferry.errors import Cancelled, ObjectRejected, ServerFault, TimedOut
from rowferry.s3 import client as s3_client
from rowferry.s3 import operations
from rowferry.s3.endpoint import resolve_endpoint
from rowferry.s3.responses import Answer
from servers import Buckets
from stand_in import StandIn, answer, keep_silent, refuse, reset


def test_only_an_answer_of_any_status_counts_as_one() -> None:
    with facing(reset) as (client, _):
        ask(client, COPY)
        assert client.last_answer is None
    for behaviour in (answer(404), refuse(503, "SlowDown"), answer(200)):
        with facing(behaviour) as (client, _):
            ask(client, COPY)
            assert client.last_answer is not None


def test_each_client_reaches_its_own_port() -> None:
    with facing(answer(200)) as (one, first), facing(answer(200)) as (other, second):
        for _ in range(3):
            ask(one, HEAD)
            ask(other, COPY)
    assert {line.split()[0] for line in first.request_lines} == {"HEAD"}
    assert {line.split()[0] for line in second.request_lines} == {"PUT"}


def test_the_bucket_is_in_the_path_behind_the_endpoints_own() -> None:
    with StandIn(answer(200)) as server:
        endpoint = resolve_endpoint(side_of(server))
        with opened(side_of(server)) as client:
            ask(client, operations.head_object("production", "/a b"))
        with opened(side_of(server), endpoint=replace(endpoint, base_path="/s3")) as client:
            ask(client, HEAD)
    assert server.request_lines == ["HEAD /bucket//a%20b HTTP/1.1", "HEAD /s3/bucket/k HTTP/1.1"]


def test_cancelling_answers_everything_in_flight() -> None:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    with facing(keep_silent) as (client, server):
        for _ in range(20):
            client.send(COPY, answers.put)
        wait_for(lambda: len(server.requests) == 8)
        client.cancel_all()
        received = [answers.get(timeout=WAIT_SECONDS) for _ in range(20)]
    assert {type(answer.error) for answer in received} == {Cancelled}


def test_closing_answers_what_is_in_flight_and_refuses_what_comes_later() -> None:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    with facing(keep_silent) as (client, server):
        client.send(COPY, answers.put)
        wait_for(lambda: server.requests)
        client.close()
        assert isinstance(answers.get_nowait().error, Cancelled)
        assert isinstance(ask(client, COPY).error, Cancelled)
        client.close()


def test_answers_never_come_from_inside_send() -> None:
    callers: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()
    broken = structs.replace(COPY, headers=(("x-amz-meta-a", "one\r\ntwo"),))
    with facing(answer(200)) as (client, _):
        for request in (HEAD, broken, structs.replace(HEAD, side="legacy")):
            client.send(request, lambda _: callers.put(threading.current_thread()))
            assert callers.get(timeout=WAIT_SECONDS) is not threading.current_thread()


def test_a_request_that_cannot_be_sent_is_answered_too() -> None:
    with facing(answer(200)) as (client, server):
        assert isinstance(ask(client, structs.replace(COPY, headers=(("a", "one\r\ntwo"),))).error, ObjectRejected)
        assert isinstance(ask(client, structs.replace(COPY, headers=(("a", "\ud800"),))).error, ServerFault)
    assert server.requests == []


def test_nothing_is_ever_written_to_the_legacy_side() -> None:
    with StandIn(answer(200)) as server, opened(side_of(server, "legacy")) as client:
        assert isinstance(ask(client, structs.replace(COPY, side="legacy")).error, ObjectRejected)
        assert isinstance(ask(client, COPY).error, ObjectRejected)
        assert ask(client, operations.head_object("legacy", "k")).error is None
    assert server.request_lines == ["HEAD /bucket/k HTTP/1.1"]


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_an_object_within_the_bound_is_read_whole(buckets: Buckets, size: int) -> None:
    buckets.client.put_object(Bucket=buckets.legacy, Key="k", Body=b"x" * size)
    with clients_of(buckets, max_body_bytes=1000) as (legacy, _):
        got = ask(legacy, operations.get_object("legacy", "k"))
    assert (got.error, got.status, got.body, got.content_length) == (None, 200, b"x" * size, size)


def test_no_more_than_the_bound_is_asked_of_a_larger_object(buckets: Buckets) -> None:
    buckets.client.put_object(Bucket=buckets.legacy, Key="k", Body=b"x" * 1001)
    with clients_of(buckets, max_body_bytes=1000) as (legacy, _):
        got = ask(legacy, operations.get_object("legacy", "k"))
    assert isinstance(got.error, ObjectRejected)
    assert got.error.code == "AnswerTooLong"
    with facing(answer(206, b"x" * 1001), max_body_bytes=1000) as (client, server):
        ask(client, GET)
    assert "\r\nRange: bytes=0-1000\r\n" in server.requests[0]


def test_a_server_that_ignores_ranges_is_held_to_the_bound_too() -> None:
    with facing(answer(200, b"x" * 1001), max_body_bytes=1000) as (client, _):
        assert isinstance(ask(client, GET).error, ObjectRejected)


def test_a_range_of_ones_own_is_sent_as_it_is() -> None:
    ranged = operations.get_object("production", "k", first_byte=5, last_byte=7)
    with facing(refuse(416, "InvalidRange"), max_body_bytes=1000) as (client, server):
        assert isinstance(ask(client, ranged).error, ObjectRejected)
    assert ["Range: bytes=5-7" in request for request in server.requests] == [True]


def test_a_failing_callback_is_neither_lost_nor_contagious(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Answer) -> None:
        raise ZeroDivisionError("in the callback")

    with facing(answer(200)) as (client, server):
        client.send(HEAD, fail)
        wait_for(lambda: server.requests)
        assert ask(client, HEAD).error is None
        with pytest.raises(ZeroDivisionError, match="in the callback"):
            client.close()
        assert "ZeroDivisionError" in caplog.text
        client._traffic.callback_fault = None


def test_a_stuck_event_loop_does_not_hold_answers_back_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "GRACE", timedelta(0))
    stuck, release = threading.Event(), threading.Event()

    def block(_: Answer) -> None:
        stuck.set()
        release.wait(WAIT_SECONDS)

    with facing(answer(200), deadline=timedelta(seconds=6)) as (client, _):
        client.send(HEAD, block)
        assert stuck.wait(WAIT_SECONDS)
        try:
            assert isinstance(ask(client, HEAD).error, TimedOut)
        finally:
            release.set()
