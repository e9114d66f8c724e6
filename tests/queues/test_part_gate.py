"""Parts of all batches of a process pass a gate: so many at a time, in their order, none too late for its batch."""

import asyncio
import time
from collections.abc import Callable

import pytest

from rowferry.errors import NotStarted
from rowferry_queues.parts.send import PartGate
from rowferry_worker.multipart.part_width import FIRST

MB = 1024 * 1024
LATER = float("inf")


async def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds: after few turns of the event loop, since nothing waits for time."""
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("the condition does not hold")


async def send(gate: PartGate, deadline: float, end: asyncio.Event) -> None:
    async with gate.passing(MB, deadline, has_begun=lambda: False):
        await end.wait()


def test_so_many_pass_at_a_time_in_their_order() -> None:
    passed: list[int] = []

    async def send(gate: PartGate, number: int, end: asyncio.Event) -> None:
        async with gate.passing(MB, LATER, has_begun=lambda: True):
            passed.append(number)
            await end.wait()

    async def send_all() -> None:
        gate, end = PartGate(), asyncio.Event()
        tasks = [asyncio.create_task(send(gate, number, end)) for number in range(3 * FIRST)]
        await until(lambda: len(passed) + len(gate._waiting) == 3 * FIRST)
        assert passed == list(range(FIRST))
        end.set()
        await asyncio.gather(*tasks)

    asyncio.run(send_all())
    assert passed == list(range(3 * FIRST))


@pytest.mark.parametrize("has_begun", [True, False])
def test_only_the_first_part_of_a_batch_may_pass_after_its_deadline(has_begun: bool) -> None:
    async def send() -> bool:
        async with PartGate().passing(MB, time.monotonic() - 1, has_begun=lambda: has_begun):
            return True

    if has_begun:
        with pytest.raises(NotStarted):
            asyncio.run(send())
    else:
        assert asyncio.run(send())


def test_who_waits_past_its_deadline_or_is_cancelled_leaves_the_line() -> None:
    async def send_all() -> None:
        gate, end = PartGate(), asyncio.Event()
        holding = [asyncio.create_task(send(gate, LATER, end)) for _ in range(FIRST)]
        await until(lambda: gate._under_way == FIRST)
        with pytest.raises(NotStarted):
            await send(gate, time.monotonic() + 0.01, end)
        cancelled = asyncio.create_task(send(gate, LATER, end))
        await until(lambda: len(gate._waiting) == 2)
        cancelled.cancel()
        behind = asyncio.create_task(send(gate, LATER, end))
        await asyncio.gather(cancelled, return_exceptions=True)
        holding[0].cancel()
        await until(lambda: not gate._waiting)
        assert (behind.done(), gate._under_way) == (False, FIRST)
        end.set()
        await asyncio.gather(*holding, behind, return_exceptions=True)
        assert (behind.exception(), gate._under_way) == (None, 0)

    asyncio.run(send_all())


@pytest.mark.parametrize("at_once", [True, False])
def test_a_first_part_that_would_end_late_begins_only_if_its_turn_came_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """Its batch, whose transaction is open, is given back otherwise."""
    monkeypatch.setattr("rowferry_queues.parts.send.AT_ONCE_SECONDS", 100.0 if at_once else 0.0)

    async def send_one_late() -> None:
        gate, end, over = PartGate(), asyncio.Event(), asyncio.Event()
        over.set()
        holding = [asyncio.create_task(send(gate, LATER, end)) for _ in range(FIRST)]
        await until(lambda: gate._under_way == FIRST)
        gate._part_seconds = 1000.0
        late = asyncio.create_task(send(gate, time.monotonic() + 500, over))
        await until(lambda: len(gate._waiting) == 1)
        holding[0].cancel()
        await asyncio.wait([late])
        end.set()
        await asyncio.gather(*holding, return_exceptions=True)
        assert isinstance(late.exception(), NotStarted) == (not at_once)

    asyncio.run(send_one_late())
