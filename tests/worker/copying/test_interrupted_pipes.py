"""A piped copy may end at any moment: no connection stays in use, no memory is held, no half object stands there."""

import asyncio
from collections.abc import Iterator

import pytest

from rowferry.batch import Outcome
from rowferry.errors import CutOff, ObjectError
from rowferry.http import event_loop
from rowferry_worker.copying.copy import copy_object
from support.processes.processes import wait_for
from support.s3.copies import NEW, OLD
from support.s3.pipes import SECONDS, Pipe

BODY = bytes(range(256)) * 8192
"""2 MiB: it is piped."""
TURNS = 60
"""Of the event loop, and as many of half a millisecond: about what a copy takes here."""


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe(BODY)
    with pipe.serving():
        pipe.support.confirms_digests = True
        yield pipe


async def wait(turns: int) -> None:
    for turn in range(turns):
        await asyncio.sleep(0 if turn < TURNS // 2 else 0.0005)


async def end_after(pipe: Pipe, turns: int, end: str) -> object:
    """Start a copy, end it after so many turns, and return what came of it."""
    copying = asyncio.create_task(copy_object(pipe.requests(), pipe.options, OLD, NEW))
    await wait(turns)
    if end == "cancelled":
        copying.cancel()
    else:
        client = pipe.clients["legacy" if end == "legacy" else "production"]
        client.cut_off(CutOff("Silent", "as told"))
        await asyncio.sleep(0)
        client.cut_off(None)
    results = await asyncio.gather(copying, return_exceptions=True)
    return results[0]


@pytest.mark.parametrize("end", ["cancelled", "legacy", "production"])
def test_a_copy_that_ends_at_any_moment_leaves_nothing_behind(pipe: Pipe, end: str) -> None:
    for turns in range(TURNS):
        result = event_loop.run(end_after(pipe, turns, end), SECONDS)
        if isinstance(result, Exception):
            assert isinstance(result, ObjectError)
        pipe.assert_nothing_open()
        for client in pipe.clients.values():
            pool = client._pool
            wait_for(lambda pool=pool: not pool._opening and pool._open == pool._idle.keys())
            assert pool._outbox.busy == 0
        assert pipe.written in {None, BODY}
        pipe.production.clear()
    wait_for(lambda: not pipe.production.pop(NEW, None))  # a write of the last copies may end late
    assert pipe.copy().outcome in {Outcome.MIGRATED, Outcome.KEPT}
    assert pipe.written == BODY
