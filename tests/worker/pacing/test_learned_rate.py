"""The rate that refusals lead to, tenth by tenth of a second."""

import pytest

from rowferry.s3.retry import LONGEST_RETRY_AFTER, LONGEST_TURN
from rowferry_worker.pacing.learned_rate import ASKED_MOST, BETA, FIRST_SECONDS, LEAST, LearnedRate
from rowferry_worker.pacing.pacer import Pacer
from rowferry_worker.pacing.rate_limit import Bound

FAR = LONGEST_TURN.total_seconds()


def pass_tenths(rate: LearnedRate, now: float, *tenths: tuple[int, int]) -> float:
    """Let tenths of a second pass with so many successes and refusals; return the time after them."""
    for accepted, refused in tenths:
        now += 0.1
        if accepted:
            rate.note_successes(accepted, 0.05 * accepted)
        for _ in range(refused):
            rate.note_refused(0.0)
        rate.end_tenth(now)
    return now


def held_back(per_second: float) -> LearnedRate:
    rate = LearnedRate(0.0)
    rate.hold_back(per_second, 0.0)
    return rate


def per_second(rate: LearnedRate) -> float:
    assert rate.per_second is not None
    return rate.per_second


def test_a_server_that_refuses_all_is_left_alone_and_asked_little() -> None:
    rate = held_back(1000.0)
    now = pass_tenths(rate, 0.0, *[(0, 50)] * 5)
    assert per_second(rate) <= ASKED_MOST
    now = pass_tenths(rate, now, *[(0, 1)] * 60)
    assert per_second(rate) < 1.0
    for _ in range(100):
        now = pass_tenths(rate, now, (max(1, round(0.1 * (rate.per_second or 0.0))), 0))
    assert rate.per_second is None or rate.per_second > 20.0, "and it is found again"


def test_what_came_back_within_the_first_instant_tells_no_rate_of_thousands() -> None:
    """The first decision may come at once: a server that counts what it refuses would be refused hundreds more by."""
    rate = LearnedRate(5.0)
    rate.note_successes(40, 2.0)
    assert [rate.note_refused(0.0) for _ in range(24)][-1]
    rate.end_tenth(5.0)
    assert per_second(rate) <= 40 / FIRST_SECONDS


def test_what_a_server_that_counts_refusals_has_refused_tells_its_bound() -> None:
    """It is open again once it has worked them off."""
    rate = LearnedRate(0.0)
    now = pass_tenths(rate, 0.0, (0, 30), (0, 30), *[(0, 0)] * 5, (1, 0))
    assert 60 / now <= per_second(rate) <= 2 * 60 / now


def test_what_a_server_lets_through_while_it_refuses_is_kept() -> None:
    rate = held_back(1000.0)
    now = pass_tenths(rate, 0.0, *[(75, 25)] * 8)
    assert 550.0 < per_second(rate) < 800.0
    pass_tenths(rate, now, *[(70, 0)] * 10)
    assert 550.0 < per_second(rate) < 800.0


def test_a_rate_returns_to_its_bound_and_rises_above_it_as_cubic_does() -> None:
    rate, now, seen = held_back(1000.0), 0.0, list[float]()
    for _ in range(45):
        now = pass_tenths(rate, now, (round(0.1 * per_second(rate)), 0))
        seen.append(per_second(rate))
    assert seen[0] == pytest.approx(1000 * BETA, rel=0.02)
    assert seen[29] == pytest.approx(1000.0, rel=0.01)
    assert 1000.0 < seen[-1] < 1100.0
    assert seen == sorted(seen)


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
    full = Bound(lambda: 0.1)
    full.reserve(now)
    first = pace.reserve(key)
    assert [pace.reserve(key, full) > FAR for _ in range(10)] == [True] * 10
    assert pace.reserve(key) == pytest.approx(first + 1 / (5.0 * BETA), abs=0.05)


def test_a_slower_rate_does_not_wait_for_turns_that_were_given() -> None:
    """They were given at the old one, and have come when it changes."""
    rate = held_back(1000.0)
    for _ in range(400):
        rate.reserve(0.0)
    rate.per_second = 10.0
    assert rate.reserve(0.0) < FAR + 0.01


def test_workers_of_few_requests_a_second_never_come_to_none() -> None:
    """Their even share may be none for long; a rate of none would be waited for for ever."""
    rate, now = held_back(1.5), 0.0
    for _ in range(1200):
        now = pass_tenths(rate, now, (0, 0))
        rate.fair = 0.001
        rate.follow()
    assert rate.per_second is None or rate.per_second >= LEAST


def test_a_shut_server_that_answers_without_a_success_is_open_again() -> None:
    """Answers such as 404 and 412 are no successes of the operation, and no refusals."""
    rate = held_back(1000.0)
    now = pass_tenths(rate, 0.0, *[(0, 50)] * 5)
    shut = per_second(rate)
    pass_tenths(rate, now, *[(0, 0)] * 80)
    assert rate.per_second is None or rate.per_second >= shut


def test_a_server_cannot_ask_for_a_pause_of_a_day() -> None:
    rate = held_back(100.0)
    rate.note_refused(86_400.0)
    rate.end_tenth(0.1)
    assert FAR < rate.reserve(0.1) <= LONGEST_RETRY_AFTER.total_seconds()


def test_a_worker_goes_towards_an_even_share_at_each_heartbeat() -> None:
    much, little = held_back(150.0), held_back(50.0)
    for rate in (much, little):
        rate.fair = 100.0
        for _ in range(10):
            rate.follow()
    assert per_second(much) == pytest.approx(per_second(little), abs=2.0)


def test_few_successes_of_a_slow_rate_tell_it_all_the_same() -> None:
    """Else each heartbeat would take workers of few requests a second further down."""
    rate = held_back(2.0)
    pass_tenths(rate, 0.0, *[(0, 0), (0, 0), (0, 0), (0, 0), (1, 0)] * 20)
    assert rate.through == pytest.approx(2.0, rel=0.15)


def test_what_a_connection_has_finished_counts_as_so_many_successes() -> None:
    """Sums tell the pace the same as each of them would."""
    now, key = 0.0, "server/bucket CopyObject"
    one_by_one, in_sums = Pacer(1, 4096, lambda: now), Pacer(1, 4096, lambda: now)
    for _ in range(50):
        now += 0.1
        for _ in range(64):
            one_by_one.note_success(key, 0.07, 2000, 64)
        for _ in range(4):
            in_sums.note_successes(key, [0.07] * 16, 2000, 64)
        assert not in_sums.note_successes(key, [], 2000, 64)
    assert one_by_one.limit.value == in_sums.limit.value
    assert one_by_one.rates[key].latency == pytest.approx(in_sums.rates[key].latency)
