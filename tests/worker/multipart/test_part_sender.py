"""The parts of one object: when they are left to another attempt, and how many travel."""

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
from rowferry_worker.multipart.side_by_side import AT_ONCE, PartRange, PartSender
from support.running.on_loop import on_loop

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


@pytest.mark.parametrize(("budget", "sent"), [(0.5, 1), (9, 9), (9.5, 10), (math.inf, 20)])
def test_no_part_begins_past_the_time_budget_but_the_first(
    monkeypatch: pytest.MonkeyPatch, budget: float, sent: int
) -> None:
    clock = Clock(monkeypatch)
    large = LargeObjects(deadline=clock.now + budget)
    sender = PartSender(clock.send, split_range(20, 1), large, may_stop=True)
    assert asyncio.run(sender.send_all()) is (sent == 20)
    assert len(sender.sent) == sent


def sending_to(room: PartRoom, begun: list[int], may_end: asyncio.Event, parts: int) -> asyncio.Task[bool]:
    async def send(part: PartRange) -> Part:
        begun.append(part.number)
        await may_end.wait()
        return Part(part.number, "", None)

    return asyncio.create_task(
        PartSender(send, split_range(parts, 1), LargeObjects(room=room), may_stop=False).send_all()
    )


@pytest.mark.parametrize(("places", "parts", "at_once"), [(100, 3 * AT_ONCE, AT_ONCE), (3, 9, 4), (0, 9, 1), (9, 2, 2)])
@on_loop
async def test_as_many_parts_travel_as_there_is_room_for(places: int, parts: int, at_once: int) -> None:
    """One of them in the object's own place."""
    room = PartRoom(lambda: room.grant(lambda: True, places), lambda: None)
    begun, may_end = list[int](), asyncio.Event()
    sending = sending_to(room, begun, may_end, parts)
    for _ in range(1000):
        await asyncio.sleep(0)
    assert begun == list(range(1, at_once + 1))
    may_end.set()
    assert await sending
    assert (sorted(begun), room.taken) == (list(range(1, parts + 1)), 0)


@on_loop
async def test_two_objects_share_the_places() -> None:
    room = PartRoom(lambda: room.grant(lambda: True, 6), lambda: None)
    begun, may_end = (list[int](), list[int]()), asyncio.Event()
    sending = [sending_to(room, each, may_end, 50) for each in begun]
    for _ in range(1000):
        await asyncio.sleep(0)
    assert [len(each) for each in begun] == [4, 4]
    may_end.set()
    assert await asyncio.gather(*sending) == [True, True]


@on_loop
async def test_once_parts_are_left_to_another_attempt_no_place_is_waited_for() -> None:
    room = PartRoom(lambda: None, lambda: None)
    large = LargeObjects(room=room, deadline=time.monotonic())

    async def send(part: PartRange) -> Part:
        await asyncio.sleep(0)
        return Part(part.number, "", None)

    sender = PartSender(send, split_range(9, 1), large, may_stop=True)
    assert not await asyncio.wait_for(sender.send_all(), 10)
    assert len(sender.sent) == 1


@on_loop
async def test_who_is_cancelled_gives_all_places_back() -> None:
    room = PartRoom(lambda: room.grant(lambda: True, 3), lambda: None)
    sending = sending_to(room, [], asyncio.Event(), 9)
    for _ in range(100):
        await asyncio.sleep(0)
    assert room.taken == 3
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert (room.taken, room.is_wanted and not room._waiting[0].cancelled()) == (0, False)


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
