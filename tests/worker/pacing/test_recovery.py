"""How a rate rises after refusals: back, up to what was refused, a stay, and beyond."""

import pytest

from rowferry_worker.pacing.recovery import Recovery


@pytest.mark.parametrize(
    ("seconds", "rate"),
    [(0, 90.0), (2, 95.0), (5, 97.0), (14, 97.0), (19, 100.88)],
    ids=["after the cut", "at its goal", "below what was refused", "at the end of the stay", "on the rise"],
)
def test_a_rate_returns_stays_and_rises(seconds: float, rate: float) -> None:
    recovery = Recovery(50.0, 90.0, 95.0, 100.0, stay=10.0)
    assert recovery.find_rate(50.0 + seconds) == pytest.approx(rate)


def test_the_stay_is_as_long_as_the_last_probe_was_dear() -> None:
    cheap, dear = (Recovery.after(0.0, 95.0, 97.0, 100.0, cost) for cost in (1, 20))
    assert cheap.stay < dear.stay
    searched = Recovery.after(0.0, 95.0, 97.0, 100.0, None)
    assert searched.stay == cheap.stay


def test_a_slow_rate_takes_longer() -> None:
    fast, slow = Recovery(0.0, 80.0, 100.0, 100.0), Recovery(0.0, 0.8, 1.0, 1.0)
    assert slow.find_rate(1.0) < fast.find_rate(1.0) / 100


def test_no_time_is_too_long() -> None:
    assert Recovery(0.0, 80.0, 100.0, 110.0).find_rate(1e9) > 100.0
