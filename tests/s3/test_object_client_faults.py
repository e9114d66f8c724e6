"""The hot path against a server that misbehaves: each fault has its class, nothing hangs."""

from datetime import timedelta

import pytest

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    ServerFault,
    SideFault,
    Throttled,
    TimedOut,
    Unreachable,
)
from rowferry.s3.operations import Request
from support.s3.clients import COPY, GET, HEAD, ask, facing
from support.s3.stand_in import Behaviour, answer, babble, error_body, hang_up, keep_silent, refuse, reset, stop_halfway


@pytest.mark.parametrize(
    ("request_", "behaviour", "expected"),
    [
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
        (HEAD, answer(404), ObjectNotFound),
        (HEAD, answer(403), AccessDenied),
        (COPY, reset, Unreachable),
        (COPY, hang_up, Unreachable),
        (GET, stop_halfway, Unreachable),
        (COPY, babble, ServerFault),
    ],
)
def test_each_misbehaviour_has_its_class(request_: Request, behaviour: Behaviour, expected: type[ObjectError]) -> None:
    with facing(behaviour) as (client, _):
        assert type(ask(client, request_).error) is expected


def test_an_object_whose_content_looks_like_an_error_is_read_as_it_is() -> None:
    with facing(answer(200, error_body("SlowDown"))) as (client, _):
        got = ask(client, GET)
    assert (got.error, got.body) == (None, error_body("SlowDown"))


def test_a_server_that_never_answers_is_given_up_at_the_deadline() -> None:
    with facing(keep_silent, deadline=timedelta(seconds=0.3)) as (client, _):
        got = ask(client, COPY)
    assert isinstance(got.error, TimedOut)
    assert "CopyObject" in str(got.error)
