"""Many copies at once: never more than the limit, and each of them ends exactly once, whatever happens."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, BucketNotFound, NotStarted
from rowferry.logs import current_fields, log_fields
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.copy_run import MAX_SIDE_FAULTS, CopyRun, ObjectResult
from rowferry_worker.scheduling.scheduler import CopyScheduler
from support.running.on_loop import on_loop

COPIED = CopyResult(Outcome.MIGRATED)

End = Literal["well", "error", "side fault", "fault"]
Steps = dict[str, tuple[int, End]]
"""How often each copy waits for a response, and how it ends."""


@dataclass
class Server:
    """Where copies wait for their responses; tells how many are under way."""

    pending: list[asyncio.Future[None]] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    async def respond(self, index: int = 0) -> None:
        """Respond to one copy that waits, and let it go on."""
        self.pending.pop(index).set_result(None)
        await settle()

    async def respond_to_all(self) -> None:
        await settle()
        while self.pending:
            await self.respond()

    async def copy(self, key: str, steps: int = 1, end: End = "well") -> CopyResult:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.started.append(key)
        try:
            for _ in range(steps):
                self.pending.append(asyncio.get_running_loop().create_future())
                await self.pending[-1]
            if end == "error":
                raise AccessDenied("AccessDenied", key)
            if end == "side fault":
                raise BucketNotFound("NoSuchBucket", key)
            if end == "fault":
                raise ZeroDivisionError(key)
            return COPIED
        finally:
            self.under_way -= 1
            self.ended.append(key)

    def start(self, scheduler: CopyScheduler, steps: Steps, **more: Any) -> "Started":
        """Start the copies of a batch."""
        run = CopyRun(scheduler, lambda key: self.copy(key, *steps[key]), steps, **more)
        return Started(run, asyncio.get_running_loop().create_task(run.run_all()))


@dataclass
class Started:
    """A batch whose copies were handed over."""

    run: CopyRun
    task: asyncio.Task[dict[str, ObjectResult]]

    @property
    def results(self) -> list[ObjectResult]:
        return list(self.task.result().values())


async def settle() -> None:
    """Let everything happen that is due."""
    for _ in range(100):
        await asyncio.sleep(0)


def keys(first: int, last: int, end: End = "well") -> Steps:
    """Return copies named by numbers, `last` not included."""
    return {str(number): (1, end) for number in range(first, last)}


BATCHES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["well", "well", "error"])), max_size=25)


@settings(deadline=None)
@given(st.lists(BATCHES, min_size=1, max_size=3), st.integers(1, 9), st.data())
@on_loop
async def test_in_any_order_of_responses_each_copy_ends_exactly_once(
    batches: list[list[tuple[int, End]]], limit: int, data: st.DataObject
) -> None:
    server, scheduler = Server(), CopyScheduler(limit)
    started: list[Started] = []
    for batch in batches:
        started.append(server.start(scheduler, {str(number): step for number, step in enumerate(batch)}))
        await settle()
        for _ in range(data.draw(st.integers(0, len(server.pending)))):
            await server.respond(data.draw(st.integers(0, len(server.pending) - 1)))
    while server.pending:
        await server.respond(data.draw(st.integers(0, len(server.pending) - 1)))
    assert server.most <= limit
    assert server.under_way == 0
    for batch, one in zip(batches, started, strict=True):
        assert one.task.done()
        for (_, wanted), result in zip(batch, one.results, strict=True):
            assert result == COPIED if wanted == "well" else isinstance(result, AccessDenied)
    assert len(server.ended) == len(server.started) == sum(map(len, batches))


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (2, 2), (5, 5)])
@on_loop
async def test_a_limit_that_has_changed_holds_for_the_copies_that_come_next(limit: int, expected: int) -> None:
    server, scheduler = Server(), CopyScheduler(9)
    scheduler.limit.value = 3
    server.start(scheduler, keys(0, 30))
    await settle()
    scheduler.limit.value = limit
    scheduler.start_copies()
    for _ in range(10):
        await server.respond()
    assert len(server.pending) == expected
    await server.respond_to_all()


def test_copies_that_need_no_request_end_without_one() -> None:
    """Thousands of them: none starts from within another, so no stack grows."""
    results = asyncio.run(CopyRun(CopyScheduler(1), lambda key: Server().copy(key, 0), keys(0, 5000)).run_all())
    assert list(results.values()) == [COPIED] * 5000


@on_loop
async def test_the_error_of_a_copy_holds_nothing_of_what_it_has_read() -> None:
    server = Server()
    batch = server.start(CopyScheduler(3), keys(0, 1, end="error"))
    await server.respond_to_all()
    (error,) = batch.results
    assert isinstance(error, AccessDenied)
    assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)


@on_loop
async def test_an_unexpected_exception_fails_its_batch_and_no_other() -> None:
    """Its batch must not trust its results; the other batches of the process go on."""
    server, scheduler = Server(), CopyScheduler(4)
    faulty = server.start(scheduler, {"0": (1, "well"), "1": (1, "fault"), "2": (1, "well")})
    other = server.start(scheduler, keys(3, 9))
    await server.respond_to_all()
    with pytest.raises(ZeroDivisionError):
        faulty.task.result()
    assert other.results == [COPIED] * 6


@on_loop
async def test_past_the_deadline_no_copy_starts_and_what_has_started_goes_on() -> None:
    server = Server()
    batch = server.start(CopyScheduler(2), keys(0, 5), deadline=time.monotonic())
    await asyncio.sleep(0.01)
    assert not batch.task.done()
    await server.respond_to_all()
    assert batch.results[:2] == [COPIED, COPIED]
    assert all(isinstance(result, NotStarted) for result in batch.results[2:])
    assert server.started == ["0", "1"]


@on_loop
async def test_a_batch_past_its_deadline_leaves_others_alone() -> None:
    server, scheduler = Server(), CopyScheduler(1)
    mine = server.start(scheduler, keys(0, 3))
    other = server.start(scheduler, keys(3, 6))
    await settle()
    mine.run.stop_starting()
    await server.respond_to_all()
    assert mine.task.done()
    assert other.task.done()
    assert server.started == ["0", "3", "4", "5"]


@on_loop
async def test_a_batch_that_is_stopped_before_its_first_copy_is_done() -> None:
    server, scheduler = Server(), CopyScheduler(1)
    server.start(scheduler, keys(0, 1))
    batch = server.start(scheduler, keys(1, 2))
    await settle()
    batch.run.stop_starting()
    await settle()
    assert all(isinstance(result, NotStarted) for result in batch.results)
    await server.respond_to_all()


@on_loop
async def test_after_a_few_faults_of_a_whole_side_no_more_copies_start() -> None:
    server = Server()
    batch = server.start(CopyScheduler(1), keys(0, 20, end="side fault"))
    await server.respond_to_all()
    assert len(server.started) == MAX_SIDE_FAULTS
    assert sum(isinstance(result, BucketNotFound) for result in batch.results) == MAX_SIDE_FAULTS
    assert sum(isinstance(result, NotStarted) for result in batch.results) == 20 - MAX_SIDE_FAULTS


@on_loop
async def test_a_batch_that_is_cancelled_ends_and_makes_room_for_others() -> None:
    server, scheduler = Server(), CopyScheduler(2)
    mine = server.start(scheduler, keys(0, 9))
    other = server.start(scheduler, keys(9, 12))
    await settle()
    mine.run.cancel()
    await settle()
    assert mine.task.done()
    assert server.started == ["0", "1", "9", "10"]
    server.pending = [waiting for waiting in server.pending if not waiting.done()]
    await server.respond_to_all()
    assert other.results == [COPIED] * 3


@on_loop
async def test_a_copy_that_is_cancelled_before_its_first_step_makes_room_as_well() -> None:
    server, scheduler = Server(), CopyScheduler(1)
    mine = server.start(scheduler, keys(0, 9))
    other = server.start(scheduler, keys(9, 10))
    await asyncio.sleep(0)
    mine.run.cancel()
    await settle()
    assert mine.task.done()
    server.pending = [waiting for waiting in server.pending if not waiting.done()]
    await server.respond_to_all()
    assert other.results == [COPIED]


@on_loop
async def test_each_copy_logs_with_the_fields_of_its_own_batch() -> None:
    server, scheduler, seen = Server(), CopyScheduler(1), dict[str, Any]()

    async def copy(key: str) -> CopyResult:
        seen[key] = current_fields().get("batch")
        return await server.copy(key)

    for batch in ("a", "b"):
        with log_fields(batch=batch):
            run = CopyRun(scheduler, copy, [f"{batch}{number}" for number in range(3)])
            task = asyncio.get_running_loop().create_task(run.run_all())
    await server.respond_to_all()
    await task
    assert seen == {f"{batch}{number}": batch for batch in "ab" for number in range(3)}


@on_loop
async def test_an_object_that_is_named_twice_is_copied_once() -> None:
    """Several rows may point at one object; two repairs of it at once would get in each other's way."""
    server, scheduler = Server(), CopyScheduler(4)
    run = CopyRun(scheduler, server.copy, ["a", "b", "a"])
    task = asyncio.get_running_loop().create_task(run.run_all())
    await server.respond_to_all()
    assert server.started == ["a", "b"]
    assert task.result() == {"a": COPIED, "b": COPIED}


@on_loop
async def test_a_batch_with_a_limit_of_its_own_leaves_the_places_above_it_to_others() -> None:
    server, scheduler = Server(), CopyScheduler(5)
    server.start(scheduler, keys(0, 9), most=2)
    server.start(scheduler, keys(10, 19))
    await settle()
    assert server.started == ["0", "1", "10", "11", "12"]
    await server.respond()
    assert server.started[5:] == ["2"]
    await server.respond_to_all()
    assert server.under_way == 0
