"""A migration in trouble is left alone for a while, and holds up no other."""

import logging
from datetime import timedelta

import pytest

from rowferry.errors import UsageError
from rowferry_worker.backoff import Backoff
from support.processes.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backoff(clock: Clock) -> Backoff:
    return Backoff(clock.monotonic)


def test_a_migration_that_cannot_be_worked_on_is_tried_again_after_a_growing_pause(
    backoff: Backoff, clock: Clock
) -> None:
    pauses: list[float] = []
    for _ in range(9):
        backoff.set_aside(1, UsageError("there is no bucket"))
        pauses.append(backoff.shorten(timedelta(days=1)).total_seconds())
        clock.now += pauses[-1]
        assert backoff.passed_over() == []
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_two_slots_that_find_the_same_trouble_make_one_pause_and_others_are_not_passed_over(
    backoff: Backoff, clock: Clock
) -> None:
    for _ in range(2):
        backoff.set_aside(1, UsageError("there is no bucket"))
    clock.now += 5
    assert backoff.passed_over() == []
    backoff.set_aside(1, UsageError("there is no bucket"))
    backoff.hold_back(3, timedelta(seconds=1))
    assert backoff.passed_over() == [1, 3]
    assert list(backoff.unusable()) == [1]


def test_why_a_migration_is_set_aside_is_said_once_a_reason(
    backoff: Backoff, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for reason in ("no bucket", "no bucket", "no credentials", "no credentials"):
            backoff.set_aside(1, UsageError(reason))
            clock.now += 1000
    assert [vars(record)["error"] for record in caplog.records] == ["no bucket", "no credentials"]


def test_a_success_forgets_all_trouble(backoff: Backoff, clock: Clock) -> None:
    for _ in range(5):
        backoff.set_aside(1, UsageError("no bucket"))
        clock.now += 1000
    backoff.note_usable(1)
    backoff.set_aside(1, UsageError("no bucket"))
    assert backoff.shorten(timedelta(days=1)) == timedelta(seconds=5)
    backoff.note_success(1)
    assert (backoff.passed_over(), backoff.unusable()) == ([], {})


def test_an_outage_rests_one_migration_longer_each_time(backoff: Backoff, clock: Clock) -> None:
    rests: list[float] = []
    for _ in range(200):
        backoff.note_outage(1)
        rests.append(backoff.shorten(timedelta(days=1)).total_seconds())
        clock.now += rests[-1]
    assert rests[0] <= 1
    assert 15 < max(rests) <= 30


def test_a_pause_is_due_from_the_first_fault_on_that_is_enough_for_it(backoff: Backoff, clock: Clock) -> None:
    assert backoff.due_for(1) == timedelta(0)
    backoff.note_due(1)
    clock.now += 10
    backoff.note_due(1)
    assert (backoff.due_for(1), backoff.due_for(2)) == (timedelta(seconds=10), timedelta(0))
    backoff.note_success(1)
    assert backoff.due_for(1) == timedelta(0)
