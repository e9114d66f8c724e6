"""The limit of objects in flight moves by what it did to throughput, and by nothing else."""

import pytest

from rowferry_worker.pacing.in_flight import CLIMB, START, USED, InFlightLimit

KIND = ("server/bucket PutObject", 0)
SECONDS = 0.1
"""What each response takes."""


def end_round(limit: InFlightLimit, now: float, seconds: float = SECONDS, in_flight: int | None = None) -> float:
    """Let a round of responses end; return the time after it."""
    count = in_flight or limit.value
    while not limit.note(KIND, 1, seconds, count, now):
        now += seconds / count
    return now + seconds


@pytest.mark.parametrize(
    ("in_flight", "grows"), [(int(USED * START) - 1, False), (int(USED * START) + 1, True)], ids=["unused", "used"]
)
def test_a_limit_grows_only_where_it_is_used(in_flight: int, *, grows: bool) -> None:
    """What fewer objects in flight cost tells nothing of what more would cost: few entries wait, or memory is short."""
    limit, now = InFlightLimit(1, 1000), 0.0
    for _ in range(3):
        now = end_round(limit, now, in_flight=in_flight)
    assert (limit.value > START) is grows


def test_the_limit_climbs_round_by_round_until_latency_rises_as_the_load_does() -> None:
    limit, now = InFlightLimit(1, 4096), 0.0
    for factor in (CLIMB, CLIMB**2, CLIMB**3):
        now = end_round(limit, now)
        assert limit.value == min(4096, START * factor)
    limit = InFlightLimit(1, 4096)
    now = end_round(limit, 0.0)
    now = end_round(limit, now, SECONDS * CLIMB)
    assert START <= limit.value <= 1.5 * START


def test_workers_that_start_together_begin_with_a_part_each() -> None:
    limit = InFlightLimit(1, 4096)
    limit.begin_among(16)
    assert limit.value == START // 16
