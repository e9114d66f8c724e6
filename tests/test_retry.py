"""Waits grow, are bounded, and never march in step."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry_worker.objects.retry import LONGEST, jittered, retry_delay

SECONDS = st.floats(0.001, 1000).map(lambda seconds: timedelta(seconds=seconds))


@given(st.integers(1, 10**6), SECONDS, SECONDS)
def test_a_wait_is_within_its_bounds_after_any_number_of_attempts(
    attempt: int, base: timedelta, longest: timedelta
) -> None:
    assert timedelta(0) <= retry_delay(attempt, base=base, longest=longest) <= longest


@pytest.mark.parametrize("attempt", [1, 2, 5])
def test_the_bound_doubles_with_each_attempt(attempt: int) -> None:
    base = timedelta(seconds=1)
    waits = [retry_delay(attempt, base=base) for _ in range(500)]
    assert base * 2 ** (attempt - 1) < max(waits) <= base * 2**attempt


def test_no_wait_is_longer_than_an_hour() -> None:
    assert max(retry_delay(40) for _ in range(200)) <= LONGEST == timedelta(hours=1)


def test_waits_differ() -> None:
    assert len({retry_delay(5) for _ in range(20)}) > 10
    assert len({jittered(timedelta(seconds=1)) for _ in range(20)}) > 10


@given(SECONDS)
def test_jitter_stays_around_the_wait(wait: timedelta) -> None:
    assert wait * 0.5 - timedelta(microseconds=1) <= jittered(wait) <= wait * 1.5 + timedelta(microseconds=1)
