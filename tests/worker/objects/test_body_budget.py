"""How many bytes of bodies are held at once: each waits for its turn, and none for ever."""

import asyncio
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.s3.responses import Response
from rowferry_worker.multipart.completion import Large, Part
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.multipart.streamed_parts import StreamedParts
from rowferry_worker.objects.memory import EXPECTED_BYTES, TLS_BUFFER_BYTES, TLS_BYTES, BodyBudget, Hold
from rowferry_worker.objects.pipe import PIPE_BYTES
from rowferry_worker.objects.requests import ObjectRequests
from support.running.on_loop import on_loop

DIGEST = "0123456789abcdef0123456789abcdef"


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@on_loop
async def test_what_fits_is_held_at_once_and_what_does_not_waits_in_line() -> None:
    budget, order = BodyBudget(100), list[str]()

    async def hold(name: str, size: int) -> Hold:
        held = await budget.hold(size)
        order.append(name)
        return held

    first = await hold("first", 60)
    large, small = asyncio.create_task(hold("large", 90)), asyncio.create_task(hold("small", 10))
    await settle()
    assert order == ["first"]
    first.release()
    await settle()
    assert (order, budget.held_bytes) == (["first", "large", "small"], 100)
    for task in (large, small):
        (await task).release()
    assert budget.held_bytes == 0


@on_loop
async def test_who_does_not_know_yet_takes_what_the_last_ones_held() -> None:
    budget = BodyBudget(100, expected_bytes=0)
    for _ in range(20):
        with await budget.hold() as hold:
            hold.resize(40)
    holds = [await budget.hold() for _ in range(2)]
    waiting = asyncio.create_task(budget.hold())
    await settle()
    assert not waiting.done()
    assert 70 < budget.held_bytes <= 80
    holds[0].resize(1)  # it was a small one: there is room for another
    (await waiting).release()
    for hold in holds:
        hold.release()
        hold.release()
    assert budget.held_bytes == 0


@pytest.mark.parametrize("size", [1000, TLS_BUFFER_BYTES, 4 * TLS_BUFFER_BYTES])
@on_loop
async def test_what_passes_over_tls_counts_with_the_buffers_of_its_connections(size: int) -> None:
    budget = BodyBudget(100 * EXPECTED_BYTES)
    both = size + 2 * (TLS_BYTES + 2 * min(size, TLS_BUFFER_BYTES))
    with await budget.hold(tls_connections=2) as hold:
        assert budget.held_bytes > EXPECTED_BYTES
        hold.resize(size)
        assert budget.held_bytes == both
        await hold.wait_for(size)
        assert budget.held_bytes == both
        with await budget.hold(budget.total_bytes - both):
            assert hold.fits(size)
            assert not hold.fits(size + 1)
        hold.resize(size)
    assert budget.held_bytes == 0


@on_loop
async def test_who_has_a_share_never_waits_for_more() -> None:
    budget = BodyBudget(100)
    holds = [await budget.hold(50) for _ in range(2)]
    for hold in holds:
        hold.resize(90)
    assert budget.held_bytes == 180
    waiting = asyncio.create_task(budget.hold(10))
    holds[0].release()
    (await waiting).release()
    holds[1].release()


@on_loop
async def test_who_turns_out_to_be_large_may_give_its_share_back_and_wait() -> None:
    budget = BodyBudget(100, expected_bytes=0)
    first, second = await budget.hold(60), await budget.hold()
    assert (second.fits(40), second.fits(41)) == (True, False)
    waiting = asyncio.create_task(second.wait_for(90))
    await settle()
    assert (waiting.done(), budget.held_bytes) == (False, 60)
    assert budget._expected == 45, "the next one is not to begin in vain as well"
    first.release()
    await waiting
    assert budget.held_bytes == 90
    assert second.fits(1000), "it is alone"
    second.release()
    assert budget.held_bytes == 0


@given(st.lists(st.tuples(st.integers(0, 150), st.integers(0, 150), st.integers(0, 3), st.booleans()), max_size=30))
def test_all_is_given_back_and_everyone_gets_a_turn(copies: list[tuple[int, int, int, bool]]) -> None:
    async def copy(budget: BodyBudget, wanted: int, size: int, turns: int) -> None:
        with await budget.hold(wanted or None) as hold:
            await asyncio.sleep(0)
            hold.resize(size)
            for _ in range(turns):
                await asyncio.sleep(0)

    async def copy_all() -> int:
        budget = BodyBudget(100)
        tasks = [asyncio.create_task(copy(budget, wanted, size, turns)) for wanted, size, turns, _ in copies]
        await asyncio.sleep(0)
        for task, (*_, is_cancelled) in zip(tasks, copies, strict=True):
            if is_cancelled:
                task.cancel()
        async with asyncio.timeout(10):
            await asyncio.gather(*tasks, return_exceptions=True)
        return budget.held_bytes

    assert asyncio.run(copy_all()) == 0


@pytest.mark.parametrize(("etag", "is_whole"), [(f"{DIGEST}-2", False), (DIGEST, True)])
@on_loop
async def test_a_part_that_is_passed_on_holds_a_pipe_and_one_that_waits_for_the_whole_digest_two_thirds(
    etag: str, monkeypatch: pytest.MonkeyPatch, *, is_whole: bool
) -> None:
    part, held, bodies = PartRange(1, 0, 3 * PIPE_BYTES - 1), list[int](), BodyBudget(10 * PIPE_BYTES)

    async def pipe(*_: object) -> Part:
        held.append(bodies.held_bytes)
        return Part(1, DIGEST, DIGEST)

    async def go_on(*_: object) -> None: ...

    monkeypatch.setattr(StreamedParts, "_pipe", pipe)
    monkeypatch.setattr(StreamedParts, "_wait_for_whole", go_on)
    large = Large("old", Response(200, {"etag": f'"{etag}"'}, b""), "new")
    await StreamedParts(cast("ObjectRequests", None), large, bodies=bodies).send("u1", part)
    assert bodies.held_bytes == 0
    assert held == [2 * PIPE_BYTES if is_whole else PIPE_BYTES]
