"""The deadline of a request is told from a cancellation, and cancelled requests leave nothing behind."""

import asyncio
import random
from collections.abc import Awaitable
from datetime import timedelta

import pytest

from rowferry.errors import ObjectError, Unreachable
from rowferry.http import deadlines, event_loop
from rowferry.http.deadlines import Deadlines, InFlight
from rowferry.http.descriptors import share_descriptors
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import put_object
from support.s3.clients import COPY, GET, HEAD, facing
from support.s3.stand_in import answer, hang_up, reset, stop_halfway

LARGE = put_object("k", bytes(400_000), if_none_match=True)


async def wait_in_flight(inner: Awaitable[object]) -> None:
    with InFlight(Deadlines(60)) as in_flight:
        asyncio.get_running_loop().call_soon(in_flight.expire)
        await inner


@pytest.mark.parametrize("first", ["caller", "deadline"])
def test_a_caller_that_cancels_at_the_deadline_is_heeded(first: str) -> None:
    async def race() -> None:
        requests = Deadlines(60)

        async def send() -> None:
            with InFlight(requests):
                await asyncio.sleep(1000)

        task = asyncio.ensure_future(send())
        await asyncio.sleep(0)
        (in_flight,) = requests._in_flight
        ends = [task.cancel, in_flight.expire]
        for end in ends if first == "caller" else reversed(ends):
            end()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not requests._in_flight

    asyncio.run(race())


def test_a_deadline_leaves_no_cancellation_behind_and_hides_no_error_that_it_meets() -> None:
    async def fail_when_cancelled() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise Unreachable("ConnectionLost", "as told") from None

    async def go_on() -> None:
        for inner, error in ((asyncio.sleep(1000), TimeoutError), (fail_when_cancelled(), Unreachable)):
            with pytest.raises(error):
                await wait_in_flight(inner)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        async with asyncio.timeout(60):  # takes a cancellation that is left for its own
            await asyncio.sleep(0)

    asyncio.run(go_on())


def test_cancelled_requests_leave_no_connection_and_no_place_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "SCAN_SECONDS", 0.01)
    dice = random.Random(7)
    choices = [answer(200, b"x"), answer(200), answer(200, Connection="close"), hang_up, reset, stop_halfway]
    behaviours = dice.choices(choices, k=1000)

    async def cancel_at_random(client: ObjectClient) -> int:
        sent: list[asyncio.Task[object]] = []
        for _ in range(400):
            sent.append(asyncio.ensure_future(client.send(dice.choice([GET, HEAD, COPY, LARGE]))))
            for _ in range(dice.randrange(4)):
                await asyncio.sleep(dice.choice([0, 0, 0.002]))
            if dice.random() < 0.5:
                dice.choice(sent).cancel()
        ends = await asyncio.gather(*sent, return_exceptions=True)
        assert all(not isinstance(end, Exception) or isinstance(end, ObjectError) for end in ends)
        pool = client._pool
        async with asyncio.timeout(60):
            while pool._opening or pool._outbox.busy or pool._open != set(pool._idle):
                await asyncio.sleep(0.01)
        assert not client._deadlines._in_flight
        assert not pool._opening
        assert all(waiter.done() for waiter in pool.waiting)
        assert pool._outbox.busy == 0
        assert pool._open == set(pool._idle)
        return pool._descriptors.used - len(pool._open)

    used_by_others = event_loop.run(count_descriptors())
    with facing(*behaviours, answer(200), max_in_flight=4, deadline=timedelta(seconds=60)) as (client, _):
        assert event_loop.run(cancel_at_random(client)) == used_by_others


async def count_descriptors() -> int:
    return share_descriptors().used
