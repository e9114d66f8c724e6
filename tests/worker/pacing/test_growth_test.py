"""Refusals that go on far below what a server has let through are its habit, and are tried as such again."""

import pytest

from rowferry_worker.pacing.habit import GrowthTest, LetThrough, Window
from rowferry_worker.pacing.tenths import Tenth

LET_THROUGH = 1000.0
PAUSED = 11.0
"""Seconds after the last test at which the next may be made."""


@pytest.mark.parametrize(
    ("now", "rate", "accepted", "refused", "is_due"),
    [
        (PAUSED, 400.0, 190, 9, True),
        (PAUSED, 400.0, 191, 9, False),
        (PAUSED, 400.0, 20, 5, False),
        (PAUSED, 600.0, 190, 9, False),
        (9.0, 400.0, 190, 9, False),
    ],
    ids=["much is refused", "little", "too few to tell", "near the bound", "soon after the last"],
)
def test_a_bound_is_doubted_where_much_is_refused_far_below_it(
    now: float, rate: float, accepted: int, refused: int, *, is_due: bool
) -> None:
    test = GrowthTest()
    test.end(0.0, LET_THROUGH)
    assert test.is_due(now, rate, Tenth(now, 0.1, accepted, refused)) is is_due


def test_after_five_seconds_without_an_excess_the_test_begins_anew() -> None:
    test, few_refused = GrowthTest(), Window(1.0, 100, 5)
    assert [test.goes_on(now, few_refused, 0.0) for now in (20.0, 20.9, 21.5)] == [True, True, False]
    assert not test.goes_on(26.0, few_refused, 0.0)
    assert test.goes_on(31.5, few_refused, 0.0)


def test_what_is_let_through_is_counted_by_whole_seconds() -> None:
    let_through = LetThrough()
    let_through.begin(0.0)
    found: list[float] = []
    for now, accepted in ((0.5, 30), (0.75, 30), (1.0, 40), (1.5, 25), (2.0, 25)):
        let_through.note(now, accepted)
        found.append(let_through.best)
    assert found == [0.0, 0.0, 100.0, 100.0, 100.0]
    assert let_through.least == pytest.approx(70.0)
