"""The limit of objects in flight moves by what it did to latency, and by nothing else."""

import pytest

from rowferry_worker.pacing.in_flight import START, USED, InFlightLimit

SECONDS = 0.1
"""What each response takes."""


def end_rounds(limit: InFlightLimit, in_flight: int, rounds: int) -> None:
    """Let rounds end in which so many objects were in flight all the time, and in requests."""
    now, ended = 0.0, 0
    while ended < rounds:
        now += SECONDS / in_flight
        ended += limit.note(("PutObject", 0), SECONDS, in_flight, now)


@pytest.mark.parametrize(
    ("in_flight", "grows"), [(int(USED * START) - 1, False), (int(USED * START) + 1, True)], ids=["unused", "used"]
)
def test_a_limit_grows_only_where_it_is_used(in_flight: int, *, grows: bool) -> None:
    """What fewer objects in flight cost tells nothing of what more would cost: few entries wait, or memory is short."""
    limit = InFlightLimit(1, 1000)
    end_rounds(limit, in_flight, 3)
    assert (limit.value > START) is grows
