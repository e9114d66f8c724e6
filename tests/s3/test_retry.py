"""A request is sent again where a pause may help; waits grow, are bounded, and never march in step."""

import asyncio
from collections.abc import Awaitable, Callable
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
from rowferry.s3.operations import Request, head_object, put_object
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

REQUEST = head_object("production", "key")
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


def send(
    server: Scripted, request: Request | Callable[[], Awaitable[Request]] = REQUEST, **more: Any
) -> tuple[Response | ObjectError, list[bool]]:
    """Send a request with retries; return its result, and for each try whether another one followed."""
    recorded: list[bool] = []

    def record(request: Request, result: Response | ObjectError, seconds: float, *, again: bool) -> None:
        assert seconds >= 0
        assert isinstance(result, ObjectError) or not again
        recorded.append(again)

    try:
        return asyncio.run(send_with_retries(server.send, request, record=record, **more)), recorded
    except ObjectError as error:
        return error, recorded


@pytest.fixture
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "pause_before_retry", lambda *_: timedelta(0))


@pytest.mark.usefixtures("_no_pauses")
def test_what_may_pass_is_tried_again_until_it_passes_and_what_will_not_change_is_asked_once() -> None:
    for error_class in (Throttled, ServerFault, Unreachable):
        server = Scripted(error_class("Busy", ""), error_class("Busy", ""), OK)
        assert send(server) == (OK, [True, True, False])
    for error_class in (ObjectNotFound, PreconditionFailed, AccessDenied, TimedOut, ObjectDamaged, CutOff):
        server = Scripted(error_class("No", ""), OK)
        result, recorded = send(server)
        assert (type(result), len(server.sent), recorded) == (error_class, 1, [False])


@pytest.mark.usefixtures("_no_pauses")
@pytest.mark.parametrize("tries", [1, 2, TRIES])
def test_the_last_of_all_tries_raises_its_error(tries: int) -> None:
    errors = [Throttled("SlowDown", str(number)) for number in range(1, TRIES + 1)]
    result, recorded = send(Scripted(*errors), tries=tries)
    assert result is errors[tries - 1]
    assert recorded == [True] * (tries - 1) + [False]


@pytest.mark.usefixtures("_no_pauses")
def test_each_try_takes_its_turn_under_a_rate_limit() -> None:
    turns: list[tuple[str, str]] = []

    def reserve(side: str, operation: str) -> timedelta:
        turns.append((side, operation))
        return timedelta(milliseconds=1)

    assert send(Scripted(Throttled("SlowDown", ""), OK), reserve=reserve)[0] is OK
    assert turns == [(REQUEST.side, REQUEST.operation)] * 2


@pytest.mark.usefixtures("_no_pauses")
def test_a_request_that_must_look_first_is_prepared_before_each_try_and_what_it_finds_ends_the_retries() -> None:
    async def look() -> Request:
        found = looks.pop(0)
        if isinstance(found, ObjectError):
            raise found
        return found

    first, second = (put_object("key", b"", if_none_match=condition) for condition in (False, True))
    looks: list[Request | ObjectError] = [first, second]
    server = Scripted(Throttled("SlowDown", ""), OK)
    assert send(server, look)[0] is OK
    assert server.sent == [first, second]
    looks = [first, PreconditionFailed("Exists", "")]
    server = Scripted(Throttled("SlowDown", ""), OK)
    assert isinstance(send(server, look)[0], PreconditionFailed)
    assert server.sent == [first]


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


def test_a_turn_that_is_far_away_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate may have risen meanwhile; a turn that is near is waited for, and is taken."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(retry.asyncio, "sleep", sleep)
    waits = (timedelta(seconds=seconds) for seconds in (3.0, 0.7, 0.1))
    asyncio.run(retry.wait_for_turn(next(waits), lambda _side, _operation: next(waits), "production", "PutObject"))
    assert slept == [retry.LONGEST_TURN.total_seconds()] * 2 + [0.1]
    assert next(waits, None) is None
