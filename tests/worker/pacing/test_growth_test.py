"""Refusals that go on far below what a server has let through are its habit, and are tried as such again."""

import pytest

from rowferry_worker.pacing.habit import GrowthTest
from rowferry_worker.pacing.slots import Slot

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
    assert test.is_due(now, rate, Slot(now, 0.1, accepted, refused)) is is_due
