"""The parts of one object: when they are left to another attempt, and how many begin."""

import asyncio
import math
import time
from datetime import timedelta

import pytest

from rowferry.errors import Cancelled, ObjectError
from rowferry_worker.multipart import side_by_side
from rowferry_worker.multipart.completion import Part
from rowferry_worker.multipart.large import LargeObjects, PartRoom
from rowferry_worker.multipart.part_size import split_range
from rowferry_worker.multipart.part_width import FIRST
from rowferry_worker.multipart.side_by_side import PartRange, PartSender

SECOND = 1.0


class Clock:
    """Each part takes a second; nothing waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    async def send(self, part: PartRange) -> Part:
        await asyncio.sleep(0)
        self.now += SECOND
        return Part(part.number, "", None)


@pytest.mark.parametrize(
    ("budget", "is_shared", "sent"),
    [(9, False, 8), (10, False, 20), (11, False, 20), (math.inf, False, 20), (10, True, 9), (0.5, True, 1)],
)
def test_what_takes_no_longer_than_the_attempt_had_is_sent(
    monkeypatch: pytest.MonkeyPatch, budget: float, is_shared: bool, sent: int
) -> None:
    """Of an object whose parts other batches send as well, no part is begun that would end past the budget."""
    clock = Clock(monkeypatch)
    large = LargeObjects(deadline=clock.now + budget, is_shared=is_shared)
    sender = PartSender(clock.send, split_range(20, 1), large, may_stop=True)
    assert asyncio.run(sender.send_all()) is (sent == 20)
    assert len(sender.sent) == sent


def test_the_next_object_begins_with_nearly_as_many_as_have_paid() -> None:
    room = PartRoom(lambda: room.grant(lambda: True, 100), lambda: None)

    async def count_begun() -> int:
        """Send an object whose parts end when no more of them begin, and return how many that were."""
        begun, may_end = 0, asyncio.Event()

        async def send(part: PartRange) -> Part:
            nonlocal begun
            begun += 1
            await may_end.wait()
            return Part(part.number, "", None)

        parts = split_range(4 * FIRST, 1)
        sending = asyncio.create_task(PartSender(send, parts, LargeObjects(room=room), may_stop=False).send_all())
        for _ in range(1000):
            await asyncio.sleep(0)
        seen = begun
        may_end.set()
        await sending
        return seen

    assert asyncio.run(count_begun()) == FIRST
    assert room.width >= FIRST
    room.width = 2 * FIRST
    assert asyncio.run(count_begun()) == 3 * 2 * FIRST // 4, "three quarters of it"


@pytest.mark.parametrize(
    ("seconds", "error", "ends"),
    [
        (100, ObjectError("AccessDenied", "refused"), True),
        (0, ObjectError("AccessDenied", "refused"), False),
        (100, Cancelled("Cancelled", "refused"), False),
    ],
    ids=["in time", "too late", "of a worker that stops"],
)
def test_parts_under_way_may_end_when_another_has_failed(
    monkeypatch: pytest.MonkeyPatch, seconds: float, error: ObjectError, ends: bool
) -> None:
    """A server that has begun to take a part may keep it after the abort, and its upload with it; but not for ever."""
    monkeypatch.setattr(side_by_side, "END_WITHIN", timedelta(seconds=seconds))
    ended: list[int] = []

    async def send(part: PartRange) -> Part:
        if part.number == 2:
            raise error
        for _ in range(100):
            await asyncio.sleep(0)
        ended.append(part.number)
        return Part(part.number, "", None)

    room = PartRoom(lambda: room.grant(lambda: True, 100), lambda: None)
    sender = PartSender(send, split_range(8, 1), LargeObjects(room=room), may_stop=False)
    with pytest.raises(ObjectError, match="refused"):
        asyncio.run(sender.send_all())
    assert (1 in ended) is ends
    assert len(ended) < 8, "no more of them begin"
