"""After a pause the world may be another one: what writes looks again, and a cancelled copy sends nothing more."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from rowferry.batch import Batch, Outcome
from rowferry.errors import ObjectError
from rowferry.s3 import retry
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry.s3.retry import Send
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.objects import multipart
from rowferry_worker.objects.copy import CopyResult, copy_object, overwrite
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.objects.scheduler import CopyScheduler
from rowferry_worker.objects.transfer import CopyMethod, ServerCopy, StreamCopy
from support.s3.copies import NEW, OLD, Support, fake_with, options_of
from support.s3.fake_buckets import WRITING, FakeBuckets, Result, Stored, refuse

LARGE = b"0123456789"
BUSY = refuse(503, "SlowDown")
LOST = refuse(0, "ConnectionLost")
CLAIMED = Batch(1, 1, 1, "migrate", {}, 1, 5, 0, 0)
METHODS = {
    "server": ServerCopy("old"),
    "stream": StreamCopy(),
    "server by parts": ServerCopy("old", 4),
    "stream by parts": StreamCopy(threshold_bytes=4),
}


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> CopyMethod:
    return METHODS[request.param]


def large_fake(method: CopyMethod, existing: bytes | None = None, **more: Any) -> FakeBuckets:
    return fake_with(LARGE, existing, too_large_bytes=getattr(method, "_threshold_bytes", None) or 100, **more)


def end_of(fake: FakeBuckets, copy: Coroutine[Any, Any, CopyResult]) -> CopyResult | ObjectError:
    try:
        return fake.run(copy)
    except ObjectError as error:
        return error


def refuse_first(fake: FakeBuckets, error: ObjectError, *, others: bytes | None = None, times: int = 1) -> None:
    """Respond to the first writes so; during the pause after them, the application writes an object of its own."""

    def interfere(request: Request) -> Result | None:
        seen = sum(request.operation in WRITING for request in fake.seen)
        if request.operation not in WRITING or seen > times:
            return None
        if others is not None:
            fake.production[NEW] = Stored(others)
        return error.copy()

    fake.interfere = interfere


@pytest.mark.parametrize("error", [BUSY, LOST], ids=["throttled", "lost"])
@pytest.mark.parametrize("support", ["unknown", "ignored"])
def test_what_appears_before_a_write_is_sent_again_is_not_overwritten(
    error: ObjectError, support: Support, method: CopyMethod
) -> None:
    fake = large_fake(method)
    refuse_first(fake, error, others=b"another!!!")
    assert end_of(fake, copy_object(fake.s3, options_of(method, support), OLD, NEW)) == CopyResult(Outcome.CONFLICT)
    assert fake.production[NEW].body == b"another!!!"


@pytest.mark.parametrize("support", ["unknown", "ignored", "supported"])
def test_a_busy_server_is_asked_again_until_it_has_time(support: Support, method: CopyMethod) -> None:
    fake = large_fake(method, honours=WRITING)
    refuse_first(fake, BUSY, times=retry.TRIES - 1)
    end = end_of(fake, copy_object(fake.s3, options_of(method, support), OLD, NEW))
    assert isinstance(end, CopyResult)
    assert end.outcome is Outcome.MIGRATED
    assert fake.production[NEW].body == LARGE


def test_a_server_that_stays_busy_is_not_asked_for_ever(method: CopyMethod) -> None:
    fake = large_fake(method)
    refuse_first(fake, BUSY, times=1000)
    assert getattr(end_of(fake, copy_object(fake.s3, options_of(method), OLD, NEW)), "code", "") == "SlowDown"
    assert sum(request.operation in WRITING for request in fake.seen) == retry.TRIES


def test_what_is_to_be_overwritten_is_overwritten_at_the_second_try_as_well(method: CopyMethod) -> None:
    fake = large_fake(method, b"another!!!")
    refuse_first(fake, BUSY)
    end = end_of(fake, overwrite(fake.s3, options_of(method), OLD, NEW))
    assert isinstance(end, CopyResult)
    assert end.outcome is Outcome.MIGRATED
    assert fake.production[NEW].body == LARGE


class Holding:
    """Sends requests to a fake server, but leaves those of one operation without a response, and sets the event."""

    def __init__(self, fake: FakeBuckets, operation: str, held: Event) -> None:
        self._fake, self._operation, self._held = fake, operation, held

    async def send(self, request: Request) -> Response:
        if request.operation != self._operation:
            return await self._fake.send(request)
        self._fake.seen.append(request)
        self._held.set()
        return await asyncio.get_running_loop().create_future()


def release_while(fake: FakeBuckets, method: CopyMethod, send: Send, give_up: Event) -> None:
    """Copy an object for a batch that is released once `give_up` is set."""
    nothing: Any = None
    context = BatchContext(nothing, CLAIMED, nothing, nothing, nothing, CopyScheduler(1), give_up)
    s3, options = ObjectRequests(send), options_of(method)
    with pytest.raises(BatchReleased):
        run_copies(context, lambda key: copy_object(s3, options, key, NEW), [OLD])
    assert fake.production == {}


def test_a_batch_that_is_released_sends_nothing_after_the_request_that_is_under_way() -> None:
    fake, held = fake_with(), Event()
    release_while(fake, StreamCopy(), Holding(fake, "GetObject", held).send, held)
    assert fake.operations == ["GetObject legacy"]


def test_a_batch_that_is_released_sends_nothing_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "pause_before_retry", lambda *_: timedelta(hours=1))
    fake, refused = fake_with(), Event()

    def interfere(_request: Request) -> Result:
        refused.set()
        return BUSY.copy()

    fake.interfere = interfere
    release_while(fake, StreamCopy(), fake.send, refused)
    assert fake.operations == ["GetObject legacy"]


@pytest.mark.parametrize(
    ("method", "held_at"),
    [(ServerCopy("old", 4), "UploadPartCopy"), (StreamCopy(threshold_bytes=4), "UploadPart")],
    ids=["server", "stream"],
)
def test_the_uploads_of_a_batch_that_is_released_are_aborted(method: CopyMethod, held_at: str) -> None:
    fake, held = large_fake(method), Event()
    release_while(fake, method, Holding(fake, held_at, held).send, held)
    assert fake.operations[-1] == "AbortMultipartUpload production"
    assert fake.uploads == {}


def test_an_upload_whose_completion_is_under_way_is_left_alone_when_its_batch_is_released() -> None:
    """The server may complete it all the same."""
    method = StreamCopy(threshold_bytes=4)
    fake, held = large_fake(method), Event()
    release_while(fake, method, Holding(fake, "CompleteMultipartUpload", held).send, held)
    assert "AbortMultipartUpload production" not in fake.operations


def test_a_slot_hears_of_a_copy_that_ends_with_an_unexpected_timeout() -> None:
    """It is not taken for one of the slot's own short waits, which would never end."""
    nothing: Any = None
    give_up = Event()
    context = BatchContext(nothing, CLAIMED, nothing, nothing, nothing, CopyScheduler(1), give_up)

    async def copy(_key: str) -> CopyResult:
        asyncio.get_running_loop().call_later(2, give_up.set)
        raise TimeoutError("a mistake")

    with pytest.raises(TimeoutError, match="a mistake"):
        run_copies(context, copy, [OLD])


class HoldingAborts:
    """Sends requests to a fake server; aborts, and what else is named, get no response."""

    def __init__(self, fake: FakeBuckets, *operations: str) -> None:
        self._fake, self._operations = fake, {"AbortMultipartUpload", *operations}
        self.held = asyncio.Event()
        self.aborts: list[asyncio.Task[Any] | None] = []

    async def send(self, request: Request) -> Response:
        if request.operation not in self._operations:
            return await self._fake.send(request)
        self.held.set()
        if request.operation == "AbortMultipartUpload":
            self.aborts.append(asyncio.current_task())
        return await asyncio.get_running_loop().create_future()


async def cancel_held(copy: Coroutine[Any, Any, CopyResult], holding: HoldingAborts) -> None:
    """Start a copy, and cancel it once a request of it is held."""
    task = asyncio.ensure_future(copy)
    await asyncio.wait_for(holding.held.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


def test_an_abort_that_gets_no_response_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be sent again and again for a batch that others may have by now."""
    monkeypatch.setattr(multipart, "ABORT_WITHIN", timedelta(seconds=0.05))
    method = StreamCopy(threshold_bytes=4)

    async def test() -> None:
        holding = HoldingAborts(large_fake(method), "UploadPart")
        await cancel_held(copy_object(ObjectRequests(holding.send), options_of(method), OLD, NEW), holding)
        await asyncio.sleep(0)
        (abort,) = holding.aborts
        assert abort is not None
        assert abort.done()

    asyncio.run(test())


def test_a_copy_that_is_cancelled_during_an_abort_overwrites_nothing_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The object that stopped the upload may be what another worker has written for the batch meanwhile."""
    monkeypatch.setattr(multipart, "ABORT_WITHIN", timedelta(seconds=0.05))
    method = StreamCopy(threshold_bytes=4)
    fake = large_fake(method)

    def interfere(request: Request) -> None:
        if request.operation == "UploadPart":
            fake.production[NEW] = Stored(b"another!!!")

    fake.interfere = interfere

    async def test() -> None:
        holding = HoldingAborts(fake)
        options = options_of(method, on_conflict="overwrite")
        await cancel_held(copy_object(ObjectRequests(holding.send), options, OLD, NEW), holding)

    asyncio.run(test())
    assert fake.production[NEW].body == b"another!!!"
