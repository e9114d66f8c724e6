"""How far a rate is cut, and where it returns to."""

import pytest

from rowferry_worker.pacing.cuts import BELOW, LEAST, Cuts

RATE = 100.0


def begun(*, is_searched: bool = False) -> Cuts:
    cuts = Cuts()
    cuts.begin(RATE, 5, is_searched=is_searched)
    return cuts


def test_each_cut_is_deeper_until_refusals_end() -> None:
    cuts, rate, depths = begun(), RATE, list[float]()
    for _ in range(6):
        lower = cuts.cut_by(0.0, rate, LEAST)
        depths.append(1 - lower / rate)
        rate = lower
    assert depths == pytest.approx([0.04, 0.08, 0.16, 0.32, 0.5, 0.5])


def test_what_is_let_through_is_the_bound() -> None:
    cuts = begun()
    assert cuts.cut_by(0.25, RATE, LEAST) < 75.0
    assert cuts.goal == pytest.approx(BELOW * 75.0)


def test_a_rate_that_was_searched_for_is_cut_deeper() -> None:
    assert begun(is_searched=True).cut_by(0.25, RATE, LEAST) < begun().cut_by(0.25, RATE, LEAST)


def test_a_bound_that_is_unsure_is_looked_for_above_its_goal() -> None:
    """But not higher than where refusals began."""
    sure, unsure = begun(), begun()
    sure.cut_by(0.1, RATE, LEAST)
    rate = RATE
    for _ in range(5):
        rate = unsure.cut_by(0.1, rate, LEAST)
    assert sure.recover(0.0, 86.0, None).ceiling == RATE
    assert unsure.ceiling < unsure.recover(0.0, rate, None).ceiling < RATE


@pytest.mark.parametrize(("fair", "ceiling"), [(None, 100.0), (80.0, 96.0), (20.0, 88.0)])
def test_a_worker_returns_to_little_more_than_an_even_share(fair: float | None, ceiling: float) -> None:
    """And to what it had after the cut in any case."""
    cuts = begun()
    cuts.cut_by(1 - 0.9 / BELOW, RATE, LEAST)
    assert cuts.recover(0.0, 88.0, fair).ceiling == pytest.approx(ceiling)
    assert cuts.recover(0.0, 88.0, fair).find_rate(5.0) == pytest.approx(max(90.0, BELOW * ceiling))


def test_another_share_of_a_bound_is_taken_with_its_cuts() -> None:
    cuts = begun()
    cuts.cut_by(0.25, RATE, LEAST)
    cuts.scale(0.5)
    assert (cuts.began_at, cuts.goal, cuts.ceiling) == (50.0, pytest.approx(BELOW * 37.5), 50.0)


def test_a_single_refusal_costs_a_moment_only() -> None:
    cuts = begun()
    assert 0.9 * RATE < cuts.cut_once(RATE, LEAST) < RATE
    assert cuts.goal == RATE
