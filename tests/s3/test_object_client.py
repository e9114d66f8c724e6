"""What the hot path promises of every request: one answer, its own server, within bounds."""

from dataclasses import replace

import pytest
from msgspec import structs

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    Cancelled,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    ServerFault,
    SideFault,
    Throttled,
    Unreachable,
)
from rowferry.http import event_loop
from rowferry.s3 import operations
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.operations import Request
from support.processes.processes import wait_for
from support.s3.buckets import Buckets
from support.s3.clients import COPY, GET, HEAD, WAIT_SECONDS, ask, begin, clients_of, facing, opened, side_of
from support.s3.scenarios import Came, Scenario, hold_scenarios
from support.s3.stand_in import (
    Behaviour,
    StandIn,
    answer,
    babble,
    error_body,
    hang_up,
    keep_silent,
    refuse,
    reset,
    stop_halfway,
)

MISBEHAVIOURS: tuple[tuple[Request, Behaviour, Came], ...] = (
    (COPY, refuse(503, "SlowDown"), Throttled),
    (HEAD, answer(503), Throttled),
    (COPY, refuse(429, "TooManyRequests"), Throttled),
    (COPY, refuse(500, "InternalError"), ServerFault),
    (COPY, answer(502, b"<html>bad gateway</html>"), ServerFault),
    (COPY, answer(504, b"<html>gateway timeout</html>"), ServerFault),
    (COPY, refuse(501, "NotImplemented"), ObjectRejected),
    (COPY, answer(200, error_body("InternalError")), ServerFault),
    (COPY, answer(200, error_body("SlowDown")), Throttled),
    (COPY, answer(200, error_body("AccessDenied")), AccessDenied),
    (COPY, answer(200, b"\n\n" + error_body("NoSuchKey")), ObjectNotFound),
    (COPY, answer(200, b"<Error"), ServerFault),
    (COPY, refuse(404, "NoSuchBucket"), BucketNotFound),
    (COPY, refuse(412, "PreconditionFailed"), PreconditionFailed),
    (COPY, refuse(409, "ConditionalRequestConflict"), PreconditionFailed),
    (COPY, refuse(400, "ExpiredToken"), SideFault),
    (COPY, refuse(403, "RequestTimeTooSkewed"), SideFault),
    (COPY, answer(301, error_body("PermanentRedirect"), Location="http://127.0.0.1:1/"), SideFault),
    (GET, answer(404, b"<html>nobody is here</html>"), ServerFault),
    (GET, answer(200, error_body("SlowDown")), error_body("SlowDown")),  # an object that looks like an error
    (HEAD, answer(404), ObjectNotFound),
    (HEAD, answer(403), AccessDenied),
    (COPY, reset, Unreachable),
    (COPY, hang_up, Unreachable),
    (GET, stop_halfway, Unreachable),
    (COPY, babble, ServerFault),
)


def test_each_misbehaviour_has_its_class(subtests: pytest.Subtests) -> None:
    scenarios = (Scenario([behaviour], [(request, came)]) for request, behaviour, came in MISBEHAVIOURS)
    hold_scenarios({f"{number} {each.asked[0][1]}": each for number, each in enumerate(scenarios)}, subtests)


def test_only_an_answer_of_any_status_counts_as_one() -> None:
    for behaviour, counts in (
        (reset, False),
        (answer(404), True),
        (refuse(503, "SlowDown"), True),
        (answer(200), True),
    ):
        with facing(behaviour) as (client, _):
            ask(client, COPY)
            assert (client.last_response is not None) == counts


def test_each_client_reaches_its_own_port_and_the_bucket_behind_the_endpoints_path() -> None:
    with StandIn(answer(200)) as server, facing(answer(200)) as (other, second):
        endpoint = resolve_endpoint(side_of(server))
        with opened(side_of(server)) as client:
            ask(client, operations.head_object("production", "/a b"))
            ask(other, COPY)
        with opened(side_of(server), endpoint=replace(endpoint, base_path="/s3")) as client:
            ask(client, HEAD)
            ask(other, COPY)
    assert server.request_lines == ["HEAD /bucket//a%20b HTTP/1.1", "HEAD /s3/bucket/k HTTP/1.1"]
    assert second.request_lines == ["PUT /bucket/k HTTP/1.1"] * 2


def test_cancelled_requests_give_their_connections_back() -> None:
    with facing(*[keep_silent] * 8, answer(200)) as (client, server):
        started = [begin(client, COPY) for _ in range(20)]
        wait_for(lambda: len(server.requests) == 8)
        event_loop.call_soon(lambda: [future.cancel() for future in started])  # at once: a place is free for none
        assert [ask(client, HEAD).status for _ in range(20)] == [200] * 20
    assert all(future.cancelled() for future in started)
    assert server.request_lines.count("HEAD /bucket/k HTTP/1.1") == 20
    assert len(server.requests) == 28


def test_closing_answers_what_is_in_flight_and_refuses_what_comes_later() -> None:
    with facing(keep_silent) as (client, server):
        started = [begin(client, COPY) for _ in range(20)]
        wait_for(lambda: server.requests)
        client.close()
        assert {type(future.result(WAIT_SECONDS).error) for future in started} == {Cancelled}
        assert isinstance(ask(client, COPY).error, Cancelled)
        client.close()


def test_a_request_that_cannot_be_sent_is_answered_too_and_nothing_is_written_to_the_legacy_side() -> None:
    with facing(answer(200)) as (client, server):
        for value in ("one\r\ntwo", "\ud800"):
            assert isinstance(ask(client, structs.replace(COPY, headers=(("a", value),))).error, ObjectRejected)
    assert server.requests == []
    with StandIn(answer(200)) as server, opened(side_of(server, "legacy")) as client:
        for request in (structs.replace(COPY, side="legacy"), COPY):
            assert isinstance(ask(client, request).error, ObjectRejected)
        assert ask(client, operations.head_object("legacy", "k")).error is None
    assert server.request_lines == ["HEAD /bucket/k HTTP/1.1"]


def test_an_object_within_the_bound_is_read_whole_and_a_larger_one_is_not(buckets: Buckets) -> None:
    with clients_of(buckets, max_body_bytes=1000) as (legacy, _):
        for size in (0, 1, 999, 1000, 1001):
            buckets.client.put_object(Bucket=buckets.legacy, Key="k", Body=b"x" * size)
            got = ask(legacy, operations.get_object("legacy", "k"))
            if size <= 1000:
                assert (got.error, got.status, got.body, got.content_length) == (None, 200, b"x" * size, size)
    assert isinstance(got.error, ObjectRejected)
    assert got.error.code == "ResponseTooLong"


def test_a_range_of_ones_own_is_sent_as_it_is() -> None:
    ranged = operations.get_object("production", "k", first_byte=5, last_byte=7)
    with facing(refuse(416, "InvalidRange"), max_body_bytes=1000) as (client, server):
        assert isinstance(ask(client, ranged).error, ObjectRejected)
    assert ["Range: bytes=5-7" in request for request in server.requests] == [True]
