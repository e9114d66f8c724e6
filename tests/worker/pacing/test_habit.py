"""Refusals at random are told from a bound by their share: it stays the same, whatever the rate."""

import pytest

from rowferry_worker.pacing.habit import Habit
from rowferry_worker.pacing.tenths import Tenths

ALONE = 0.0


def tell(habit: Habit, rate: float, accepted: int, refused: int, fair: float | None = ALONE) -> bool:
    """Let two seconds pass at a rate; return whether a habit is found."""
    tenths = Tenths(10.0)
    found = habit.is_found(10.0, rate, tenths, fair)
    for number in range(20):
        tenths.accepted, tenths.refused = accepted // 20, refused // 20
        tenths.end(10.1 + number / 10)
    return found or habit.is_found(12.05, rate, tenths, fair)


@pytest.mark.parametrize(
    ("rate", "accepted", "refused", "is_habit"),
    [
        (50.0, 95, 20, False),
        (50.0, 1900, 100, True),
        (90.0, 1900, 100, False),
        (50.0, 1980, 20, False),
        (250.0, 400, 20, True),
        (250.0, 200, 20, False),
    ],
    ids=["more than before", "the same share", "about the same rate", "a smaller share", "more let through", "a bound"],
)
def test_the_same_share_at_another_rate_is_a_habit(rate: float, accepted: int, refused: int, *, is_habit: bool) -> None:
    habit = Habit()
    habit.begin(100.0, 95, 5)
    assert tell(habit, rate, accepted, refused) == is_habit
    assert (habit.share > 0) == is_habit


@pytest.mark.parametrize(("fair", "is_habit"), [(None, False), (60.0, False), (90.0, True)])
def test_among_others_a_low_rate_tells_only_far_below_the_even_share(fair: float | None, *, is_habit: bool) -> None:
    """At a bound, the others decide what is refused of a worker that sends little."""
    habit = Habit()
    habit.begin(100.0, 95, 5)
    assert tell(habit, 50.0, 1900, 100, fair) == is_habit


def test_a_large_share_is_no_habit() -> None:
    habit = Habit()
    habit.begin(100.0, 70, 30)
    assert not habit.is_possible
    assert not tell(habit, 50.0, 1400, 600)


def test_a_habit_that_goes_is_forgotten() -> None:
    habit = Habit(share=0.08)
    habit.lower(40, 0)
    assert habit.share == 0.08
    habit.lower(300, 3)
    assert 0 < habit.share < 0.08
    habit.lower(3000, 0)
    assert habit.share == 0
