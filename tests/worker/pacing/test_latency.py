"""How latency has changed, each kind of request weighted by the time that it takes."""

import math

import pytest

from rowferry_worker.pacing.latency import Kind, Mean, compare

SMALL: Kind = ("PutObject", 10)
LARGE: Kind = ("PutObject", 30)


def test_the_change_of_a_kind_has_the_errors_of_both_windows_however_much_time_it_takes() -> None:
    for seconds in (0.5, 40.0):
        change = compare({SMALL: Mean(1.0, 0.3, 7.0)}, {SMALL: Mean(2.0, 0.4, seconds)})
        assert change == (pytest.approx(math.log(2)), pytest.approx(0.5))


def test_kinds_count_by_the_time_that_they_take_now() -> None:
    before = {SMALL: Mean(1.0, 0.0, 50.0), LARGE: Mean(1.0, 0.0, 50.0)}
    change = compare(before, {SMALL: Mean(math.e, 0.4, 3.0), LARGE: Mean(1.0, 0.3, 1.0)})
    assert change == (pytest.approx(0.75), pytest.approx(math.hypot(1.2, 0.3) / 4))


def test_windows_without_a_kind_in_common_tell_nothing() -> None:
    assert compare({SMALL: Mean(1.0, 0.1, 1.0)}, {LARGE: Mean(1.0, 0.1, 1.0)}) is None
