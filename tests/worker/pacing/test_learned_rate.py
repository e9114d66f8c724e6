"""The rate that refusals lead to, tenth by tenth of a second."""

import pytest

from rowferry.s3.retry import LONGEST_RETRY_AFTER, LONGEST_TURN
from rowferry_worker.pacing.learned_rate import LearnedRate
from rowferry_worker.pacing.pacer import Pacer
from rowferry_worker.pacing.rate_limit import RateLimiter
from rowferry_worker.pacing.reopening import ASKED_MOST

FAR = LONGEST_TURN.total_seconds()


def pass_tenths(rate: LearnedRate, now: float, *tenths: tuple[int, int]) -> float:
    """Let tenths of a second pass with so many successes and refusals; return the time after them."""
    for accepted, refused in tenths:
        now += 0.1
        for _ in range(accepted):
            rate.note_success(0.05)
        for _ in range(refused):
            rate.note_refused(now, 0.0)
        rate.end_tenth(now)
    return now


def held_back(per_second: float, *, is_alone: bool = True) -> LearnedRate:
    rate = LearnedRate(0.0, is_alone=is_alone)
    rate.hold_back(per_second)
    return rate


def test_a_server_that_refuses_all_is_left_alone_for_a_moment() -> None:
    rate = held_back(1000.0)
    now = pass_tenths(rate, 0.0, (0, 50))
    assert 0.1 < rate.reserve(now) < 2 * FAR
    assert rate.per_second is not None
    assert rate.per_second <= ASKED_MOST
    pass_tenths(rate, now, *[(1, 0)] * 5)
    assert 400.0 < rate.per_second < 1000.0


def test_a_server_that_goes_on_refusing_all_is_asked_little_and_found_again() -> None:
    rate = held_back(1000.0)
    now = pass_tenths(rate, 0.0, *[(0, 20)] * 60)
    assert rate.per_second is not None
    assert rate.per_second < 50.0
    low = rate.per_second
    for _ in range(40):
        now = pass_tenths(rate, now, (max(1, round(0.1 * (rate.per_second or 0.0))), 0))
    assert rate.per_second is None or rate.per_second > 20 * low


def test_what_a_server_lets_through_while_it_refuses_is_kept() -> None:
    rate = held_back(1000.0)
    now = pass_tenths(rate, 0.0, *[(75, 25)] * 4)
    assert rate.per_second is not None
    assert 600.0 < rate.per_second < 800.0
    pass_tenths(rate, now, *[(70, 0)] * 10)
    assert 600.0 < rate.per_second < 800.0


def test_a_turn_that_is_far_away_is_not_taken() -> None:
    rate = held_back(1.0)
    waits = [rate.reserve(0.0) for _ in range(5)]
    assert waits[0] == 0
    assert len(set(waits[1:])) == 1
    assert waits[1] > FAR


def test_a_turn_that_the_bound_of_the_plan_does_not_let_go_is_left_to_others() -> None:
    """Else a bound of many requests would starve the rate of those that may go."""
    now = 100.0
    pace, key = Pacer(1, 64, lambda: now), "server/bucket CopyObject"
    pace.hear_fleet(1, {key: (10.0, 1)})
    full = RateLimiter(lambda: 0.1, lambda: now, FAR)
    full.reserve()
    first = pace.reserve(key)
    assert [pace.reserve(key, full) > FAR for _ in range(10)] == [True] * 10
    assert pace.reserve(key) == pytest.approx(first + 1 / 5.0, abs=0.05)


def test_a_slower_rate_does_not_wait_for_turns_that_were_given() -> None:
    """They were given at the old one, and have come when it changes."""
    rate = held_back(1000.0)
    for _ in range(400):
        rate.reserve(0.0)
    rate.per_second = 10.0
    assert rate.reserve(0.0) < FAR + 0.01


def test_workers_that_get_nothing_through_go_on() -> None:
    """Their even share is none at all, as where a server counts the requests that it refuses."""
    rate, now = held_back(100.0, is_alone=False), 0.0
    rate.fair = 0.0
    for _ in range(40):
        now = pass_tenths(rate, now, (0, 5))
        rate.follow(0.0)
    assert rate.per_second is not None
    assert rate.per_second < 100.0


def test_workers_of_few_requests_a_second_never_come_to_none() -> None:
    """Their even share may be none for long; a rate of none would be waited for for ever."""
    rate, now = held_back(1.5, is_alone=False), 0.0
    for _ in range(1200):
        now = pass_tenths(rate, now, (0, 0))
        rate.follow(0.0)
    assert rate.per_second is not None
    assert rate.per_second >= 1.0


def test_a_shut_server_that_answers_without_a_success_is_open_again() -> None:
    """Answers such as 404 and 412 are no successes of the operation, and no refusals."""
    rate = held_back(1000.0)
    now = pass_tenths(rate, 0.0, *[(0, 50)] * 3)
    assert rate.per_second is not None
    shut = rate.per_second
    pass_tenths(rate, now, *[(0, 0)] * 60)
    assert rate.per_second is None or rate.per_second > 2 * shut


def test_a_server_cannot_ask_for_a_pause_of_a_day() -> None:
    rate = held_back(100.0)
    rate.note_refused(0.1, 86_400.0)
    rate.end_tenth(0.1)
    assert FAR < rate.reserve(0.1) <= LONGEST_RETRY_AFTER.total_seconds()


def test_a_worker_goes_towards_an_even_share_at_each_heartbeat() -> None:
    much, little = held_back(150.0), held_back(50.0)
    for _ in range(10):
        much.follow(100.0)
        little.follow(100.0)
    assert much.per_second is not None
    assert little.per_second is not None
    assert abs(much.per_second - little.per_second) < 2.0


def test_few_successes_of_a_slow_rate_tell_it_all_the_same() -> None:
    """Else each heartbeat would take workers of few requests a second further down."""
    rate = held_back(2.0)
    pass_tenths(rate, 0.0, *[(0, 0), (0, 0), (0, 0), (0, 0), (1, 0)] * 20)
    assert rate.through == pytest.approx(2.0, rel=0.15)
