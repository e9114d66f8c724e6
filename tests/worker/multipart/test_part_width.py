"""How many parts of one object travel side by side, on simulated links."""

import heapq

import pytest

from rowferry_worker.multipart.side_by_side import MOST, PartWidth

PART_BYTES = 5_000_000


def send(parts: int, connection_rate: float, total_rate: float, *, first: int, most: int = MOST) -> tuple[float, int]:
    """Send parts over a link and return the seconds that they took, and how many travelled side by side at the end."""
    now, left, width = 0.0, parts, PartWidth(0.0, first, most)
    under_way: list[tuple[float, float]] = []
    while left or under_way:
        while left and len(under_way) < width.value:
            rate = min(connection_rate, total_rate / width.value)  # of which each has its share
            heapq.heappush(under_way, (now + PART_BYTES / rate, now))
            left -= 1
        now, started = heapq.heappop(under_way)
        width.note_sent(PART_BYTES, started, now)
    return now, width.value


def test_parts_are_added_until_a_link_is_full() -> None:
    seconds, width = send(400, 2e6, 40e6, first=4)
    assert width >= 16
    assert 400 * PART_BYTES / seconds > 0.7 * 40e6


def test_a_link_that_one_connection_fills_gets_no_more() -> None:
    _, width = send(400, 1e9, 1e9, first=4)
    assert width <= 8


@pytest.mark.parametrize("connection_rate", [1e5, 1e7])
def test_there_are_never_more_than_the_most(connection_rate: float) -> None:
    assert send(2000, connection_rate, 1e12, first=16)[1] <= MOST
    assert send(100, connection_rate, 1e12, first=16, most=1)[1] == 1
