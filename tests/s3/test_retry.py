"""A request is sent again where a pause may help; waits grow, are bounded, and never march in step."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.errors import (
    AccessDenied,
    CutOff,
    ObjectDamaged,
    ObjectError,
    ObjectNotFound,
    PreconditionFailed,
    ServerFault,
    Throttled,
    TimedOut,
    Unreachable,
)
from rowferry.s3 import retry
from rowferry.s3.operations import Request, head_object
from rowferry.s3.responses import Response, find_error
from rowferry.s3.retry import (
    LONGEST,
    LONGEST_RETRY_AFTER,
    REQUEST_LONGEST,
    TRIES,
    jittered,
    pause_before_retry,
    retry_delay,
    send_many,
    send_with_retries,
)

OK = Response(200)

SECONDS = st.floats(0.001, 1000).map(lambda seconds: timedelta(seconds=seconds))


@given(st.integers(1, 10**6), SECONDS, SECONDS)
def test_a_wait_is_within_its_bounds_after_any_number_of_attempts(
    attempt: int, base: timedelta, longest: timedelta
) -> None:
    assert timedelta(0) <= retry_delay(attempt, base=base, longest=longest) <= longest


def test_waits_differ_and_their_bound_doubles_with_each_attempt_up_to_an_hour() -> None:
    base = timedelta(seconds=1)
    for attempt in (1, 2, 5):
        waits = [retry_delay(attempt, base=base) for _ in range(500)]
        assert base * 2 ** (attempt - 1) < max(waits) <= base * 2**attempt
    assert max(retry_delay(40) for _ in range(200)) <= LONGEST == timedelta(hours=1)
    assert len({retry_delay(5) for _ in range(20)}) > 10
    assert len({jittered(base) for _ in range(20)}) > 10


@given(SECONDS)
def test_jitter_stays_around_the_wait(wait: timedelta) -> None:
    assert wait * 0.5 - timedelta(microseconds=1) <= jittered(wait) <= wait * 1.5 + timedelta(microseconds=1)


def after(value: str, status: int = 503) -> ObjectError:
    """Return the error of a server that asks to be left alone for so long."""
    error = find_error(Response(status, {"retry-after": value}))
    assert error is not None
    return error


def test_a_server_that_asks_to_be_left_alone_for_a_while_is_within_bounds() -> None:
    for status in (429, 503):
        error = after("7", status)
        assert (type(error), error.retry_after) == (Throttled, timedelta(seconds=7))
    for value in ("", "soon", "-1", "²", "9" * 5000, "Fri, 31 Dec 1999 23:59:59 GMT"):
        assert after(value).retry_after is None, value
    for tried in (1, 5):
        assert pause_before_retry(after("12"), tried) == timedelta(seconds=12)
        assert pause_before_retry(after("9999"), tried) == LONGEST_RETRY_AFTER
    assert max(pause_before_retry(after(""), 40) for _ in range(200)) <= REQUEST_LONGEST


class Scripted:
    """Gives the next of some results for each request."""

    def __init__(self, *results: Response | ObjectError) -> None:
        self._results = list(results)
        self.sent: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.sent.append(request)
        result = self._results.pop(0)
        if isinstance(result, ObjectError):
            raise result
        return result


def send(server: Scripted, **more: Any) -> Response | ObjectError:
    """Send a request with retries; return its result."""
    try:
        return asyncio.run(send_with_retries(server.send, head_object("production", "key"), **more))
    except ObjectError as error:
        return error


@pytest.fixture
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "pause_before_retry", lambda *_: timedelta(0))


@pytest.mark.usefixtures("_no_pauses")
def test_what_may_pass_is_tried_again_until_it_passes_and_what_will_not_change_is_asked_once() -> None:
    for error_class in (Throttled, ServerFault, Unreachable):
        server = Scripted(error_class("Busy", ""), error_class("Busy", ""), OK)
        assert (send(server), len(server.sent)) == (OK, 3)
    for error_class in (ObjectNotFound, PreconditionFailed, AccessDenied, TimedOut, ObjectDamaged, CutOff):
        server = Scripted(error_class("No", ""), OK)
        assert (type(send(server)), len(server.sent)) == (error_class, 1)


@pytest.mark.usefixtures("_no_pauses")
@pytest.mark.parametrize("tries", [1, 2, TRIES])
def test_the_last_of_all_tries_raises_its_error(tries: int) -> None:
    errors = [Throttled("SlowDown", str(number)) for number in range(1, TRIES + 1)]
    assert send(Scripted(*errors), tries=tries) is errors[tries - 1]


def test_many_requests_keep_their_order_and_their_bound() -> None:
    in_flight, most = 0, 0
    requests = [head_object("production", f"key-{number}") for number in range(20)]

    async def answer(request: Request) -> Response:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0.001)
        in_flight -= 1
        if request.key == "key-7":
            raise ObjectNotFound("NoSuchKey", "")
        return Response(200, {"x-key": request.key})

    results = asyncio.run(send_many(answer, requests, at_once=3))
    keys = [result.headers["x-key"] if isinstance(result, Response) else result.code for result in results]
    assert keys == [request.key if request.key != "key-7" else "NoSuchKey" for request in requests]
    assert most == 3
