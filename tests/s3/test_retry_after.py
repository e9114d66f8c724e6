"""A server that asks to be left alone for a while is."""

from datetime import timedelta

import pytest

from rowferry.errors import Throttled
from rowferry.s3.retry import LONGEST_RETRY_AFTER, REQUEST_LONGEST, pause_before_retry
from support.s3.clients import read
from support.s3.stand_in import error_body


@pytest.mark.parametrize("status", [429, 503])
def test_an_error_carries_how_long_the_server_asks_to_wait(status: int) -> None:
    error = read(status, {"retry-after": "7"}, b"").error
    assert isinstance(error, Throttled)
    assert error.retry_after == timedelta(seconds=7)


@pytest.mark.parametrize("value", ["", "soon", "-1", "²", "9" * 5000, "Fri, 31 Dec 1999 23:59:59 GMT"])
def test_what_is_no_number_of_seconds_asks_for_nothing(value: str) -> None:
    error = read(503, {"retry-after": value}, b"").error
    assert error is not None
    assert error.retry_after is None


@pytest.mark.parametrize(("asked", "expected"), [(12, timedelta(seconds=12)), (9999, LONGEST_RETRY_AFTER)])
@pytest.mark.parametrize("tried", [1, 5])
def test_the_next_try_waits_for_as_long_within_bounds(asked: int, expected: timedelta, tried: int) -> None:
    error = read(503, {"retry-after": str(asked)}, error_body("SlowDown")).error
    assert error is not None
    assert pause_before_retry(error, tried) == expected


def test_the_waits_of_a_request_stop_growing() -> None:
    error = read(503, {}, error_body("SlowDown")).error
    assert error is not None
    assert max(pause_before_retry(error, 40) for _ in range(200)) <= REQUEST_LONGEST


def test_an_error_names_the_request_where_the_server_did() -> None:
    body = error_body("AccessDenied", "no")
    assert str(read(403, {"x-amz-request-id": "4F" * 8}, body).error) == f"AccessDenied: no (request {'4F' * 8})"
    assert str(read(403, {}, body).error) == "AccessDenied: no"
    assert len(str(read(403, {"x-amz-request-id": "x" * 9999}, body).error)) < 100
