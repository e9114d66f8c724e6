"""A piped copy may end at any moment: no connection stays in use, no memory is held, no half object stands there."""

import asyncio
from collections.abc import Iterator

import pytest

from rowferry.batch import Outcome
from rowferry.errors import CutOff, ObjectError
from rowferry.http import event_loop
from rowferry_worker.objects.copy import copy_object
from support.processes.processes import wait_for
from support.s3.piping_servers import NEW, OLD, SECONDS, Pair, running_pair

BODY = bytes(range(256)) * 8192
"""2 MiB: it is piped."""
TURNS = 60
"""Of the event loop, and as many of half a millisecond: about what a copy takes here."""


@pytest.fixture
def pair() -> Iterator[Pair]:
    with running_pair() as pair:
        pair.legacy.put(OLD, BODY)
        pair.support.confirms_digests = True
        yield pair


async def wait(turns: int) -> None:
    for turn in range(turns):
        await asyncio.sleep(0 if turn < TURNS // 2 else 0.0005)


async def end_after(pair: Pair, turns: int, end: str) -> object:
    """Start a copy, end it after so many turns, and return what came of it."""
    copying = asyncio.create_task(copy_object(pair.requests(), pair.options, OLD, NEW))
    await wait(turns)
    if end == "cancelled":
        copying.cancel()
    else:
        pair.clients[end].cut_off(CutOff("Silent", "as told"))
        await asyncio.sleep(0)
        pair.clients[end].cut_off(None)
    results = await asyncio.gather(copying, return_exceptions=True)
    return results[0]


@pytest.mark.parametrize("end", ["cancelled", "legacy", "production"])
def test_a_copy_that_ends_at_any_moment_leaves_nothing_behind(pair: Pair, end: str) -> None:
    for turns in range(TURNS):
        result = event_loop.run(end_after(pair, turns, end), SECONDS)
        if isinstance(result, Exception):
            assert isinstance(result, ObjectError)
        pair.assert_nothing_open()
        for client in pair.clients.values():
            pool = client._pool
            wait_for(lambda pool=pool: not pool._opening and pool._open == pool._idle.keys())
            assert pool._outbox.busy == 0
        assert pair.written in {None, BODY}
        pair.production.objects.clear()
    wait_for(lambda: not pair.production.objects.pop(NEW, None))  # a write of the last copies may end late
    assert pair.copy().outcome in {Outcome.MIGRATED, Outcome.KEPT}
    assert pair.written == BODY
