"""Whether less gets through than before: of one worker by the second, of many by their sum and their mean."""

import pytest

from rowferry_worker.pacing.habit import LetThrough
from rowferry_worker.pacing.learned_rate import LearnedRate

NOW = 100.0


def test_the_best_second_is_told_per_second_however_long_it_was() -> None:
    let_through = LetThrough()
    let_through.begin(NOW)
    let_through.note(NOW + 2.0, 100)
    let_through.note(NOW + 6.0, 120)
    assert let_through.best == 50.0


@pytest.mark.parametrize(
    ("per_second", "workers", "is_low"),
    [(50.0, 10, True), (50.0, 5, False), (95.0, 10, False), (95.0, 20, False), (50.0, 4, False)],
    ids=["each lower", "half have left", "nearly the same", "more workers share it", "those that stay get more"],
)
def test_a_fleet_is_low_when_the_sum_and_the_mean_of_its_workers_are(
    per_second: float, workers: int, *, is_low: bool
) -> None:
    """Workers that leave take their part of the sum along; workers that join take a part of each mean."""
    let_through = LetThrough(is_alone=False)
    let_through.note_fleet(100.0, 10, own=10.0)
    let_through.note_fleet(per_second, workers, own=10.0)
    assert let_through.find_low_since(NOW, rate=5.0) == (NOW if is_low else None)


@pytest.mark.parametrize(
    ("fair", "least", "most"),
    [(80.0, 100.0, 100.0), (95.0, 100.01, 100.1), (200.0, 101.0, 102.0)],
    ids=["more than an even share", "about an even share", "half of it"],
)
def test_a_worker_grows_towards_an_even_share_and_no_further(fair: float, least: float, most: float) -> None:
    rate = LearnedRate(NOW)
    rate.hold_back(100.0)
    rate.fair = fair
    rate.note_refused(NOW, 0.0)
    for _ in range(200):
        rate.note_success(0.1)
    rate.end_tenth(NOW + 0.1)
    assert rate.per_second is not None
    assert least <= rate.per_second <= most


def test_workers_that_get_nothing_through_go_on() -> None:
    """Their even share is none at all, as where a server counts the requests that it refuses."""
    rate, now = LearnedRate(NOW), NOW
    rate.hold_back(100.0)
    rate.fair = 0.0
    for _ in range(30):
        now += 0.1
        for _ in range(5):
            rate.note_refused(now, 0.0)
        rate.end_tenth(now)
    assert rate.per_second is not None
    assert rate.per_second < 100.0
