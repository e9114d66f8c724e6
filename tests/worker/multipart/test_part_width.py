"""How many parts of one object travel side by side, on simulated links."""

import random
from dataclasses import dataclass

import pytest

from rowferry_worker.multipart.part_width import MOST, PartWidth

PART_BYTES = 5_000_000


@dataclass(eq=False)
class Sent:
    """A part that is under way."""

    begun: float
    speed: float
    """Of its connection, against that of the fastest."""
    missing: float = PART_BYTES


def send(
    parts: int, connection_rate: float, total_rate: float, *, first: int, most: int = MOST, spread: float = 0.0
) -> tuple[float, int, list[int]]:
    """Send parts over a link and return the seconds that they took, the width that has paid last, and all widths.

    `spread`: connections are up to this share slower, so that parts do not end together.
    """
    pick = random.Random(1)
    now, left, width, widths = 0.0, parts, PartWidth(0.0, first, most), list[int]()
    under_way: list[Sent] = []
    while left or under_way:
        while left and len(under_way) < width.value:
            under_way.append(Sent(width.begin(now), 1 - spread * pick.random()))
            left -= 1
        rate = min(connection_rate, total_rate / sum(part.speed for part in under_way))
        ending = min(under_way, key=lambda part: part.missing / part.speed)
        seconds = ending.missing / ending.speed / rate
        for part in under_way:
            part.missing -= rate * part.speed * seconds
        now += seconds
        under_way.remove(ending)
        width.end(ending.begun, now, PART_BYTES)
        widths.append(width.value)
    return now, width.paid, widths


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_parts_are_added_until_a_link_is_full(spread: float) -> None:
    seconds, paid, _ = send(400, 2e6, 40e6, first=4, spread=spread)
    assert paid >= 16
    assert 400 * PART_BYTES / seconds > 0.7 * 40e6


@pytest.mark.parametrize("spread", [0.0, 0.3, 0.6])
def test_twice_the_parts_pay_where_they_fill_a_link_that_was_not_full(spread: float) -> None:
    _, paid, widths = send(400, 2e6, 40e6, first=16, spread=spread)
    assert paid == 32
    assert widths.count(16) < 100, "it stays there"


def test_a_link_that_one_connection_fills_gets_no_more() -> None:
    assert send(400, 1e9, 1e9, first=4)[1] <= 8


@pytest.mark.parametrize("connection_rate", [1e5, 1e7])
def test_there_are_never_more_than_the_most(connection_rate: float) -> None:
    assert max(send(2000, connection_rate, 1e12, first=16)[2]) == MOST
    assert send(100, connection_rate, 1e12, first=16, most=1)[1] == 1


def test_a_part_that_fails_counts_for_nothing() -> None:
    width = PartWidth(0.0, 1)
    width.end(width.begin(0.0), 1.0)
    assert width.value == 1
    width.end(width.begin(1.0), 2.0, PART_BYTES)
    assert width.value == 2
