"""After a pause the world may be another one: what writes looks again, and a cancelled copy sends nothing more."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from rowferry.batch import Attempt, Batch, Outcome
from rowferry.errors import ObjectError
from rowferry.http import event_loop
from rowferry.s3 import retry
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.copying.copy import CopyResult, copy_object, overwrite
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.multipart import upload
from rowferry_worker.scheduling.evidence import Evidence
from rowferry_worker.scheduling.scheduler import CopyScheduler
from support.s3.copies import NEW, OLD, Support, fake_with, options_of
from support.s3.fake_buckets import HELD, LOST, WRITING, FakeBuckets, refuse, stored

LARGE = b"0123456789"
BUSY = refuse(503, "SlowDown")
CLAIMED = Batch(1, 1, 1, "migrate", {}, 1, 5, 0, 0)
UNTRIED: Any = SimpleNamespace(name="m", evidence=Evidence())
"""Of a migration what its copies tell."""
METHODS = {
    "server": ServerCopy("legacy"),
    "stream": StreamCopy(),
    "server by parts": ServerCopy("legacy", 4),
    "stream by parts": StreamCopy(threshold_bytes=4),
}


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> CopyMethod:
    return METHODS[request.param]


def end_of(fake: FakeBuckets, copy: Coroutine[Any, Any, CopyResult]) -> CopyResult | ObjectError:
    try:
        return fake.run(copy)
    except ObjectError as error:
        return error


def refuse_first(fake: FakeBuckets, error: Response, *, others: bytes | None = None, times: int = 1) -> None:
    """Respond to the first writes so; during the pause after them, the application writes an object of its own."""

    def interfere(request: Request) -> Response | None:
        seen = sum(request.operation in WRITING for request in fake.seen)
        if request.operation not in WRITING or seen > times:
            return None
        if others is not None:
            fake.production[NEW] = stored(others)
        return error

    fake.interfere = interfere


@pytest.mark.parametrize("error", [BUSY, LOST], ids=["throttled", "lost"])
@pytest.mark.parametrize("support", ["unknown", "ignored"])
def test_what_appears_before_a_write_is_sent_again_is_not_overwritten(
    error: Response, support: Support, method: CopyMethod
) -> None:
    fake = fake_with(LARGE)
    refuse_first(fake, error, others=b"another!!!")
    assert end_of(fake, copy_object(fake.s3, options_of(method, support), OLD, NEW)) == CopyResult(Outcome.CONFLICT)
    assert fake.production[NEW].body == b"another!!!"


@pytest.mark.parametrize("support", ["unknown", "ignored", "supported"])
def test_a_busy_server_is_asked_again_until_it_has_time(support: Support, method: CopyMethod) -> None:
    fake = fake_with(LARGE, honours=WRITING)
    refuse_first(fake, BUSY, times=retry.TRIES - 1)
    end = end_of(fake, copy_object(fake.s3, options_of(method, support), OLD, NEW))
    assert isinstance(end, CopyResult)
    assert end.outcome is Outcome.MIGRATED
    assert fake.production[NEW].body == LARGE


def test_what_is_to_be_overwritten_is_overwritten_at_the_second_try_as_well(method: CopyMethod) -> None:
    fake = fake_with(LARGE, b"another!!!")
    refuse_first(fake, BUSY)
    end = end_of(fake, overwrite(fake.s3, options_of(method), OLD, NEW))
    assert isinstance(end, CopyResult)
    assert end.outcome is Outcome.MIGRATED
    assert fake.production[NEW].body == LARGE


def hold(fake: FakeBuckets, *operations: str, held: Callable[[], object]) -> None:
    """Leave requests of these operations without a response, and tell of each."""

    def interfere(request: Request) -> Response | None:
        if request.operation not in operations:
            return None
        held()
        return HELD

    fake.interfere = interfere


def context_of(give_up: Event) -> BatchContext:
    nothing: Any = None
    return BatchContext(nothing, CLAIMED, Attempt(1, 1, 0), nothing, UNTRIED, CopyScheduler(1), give_up)


def release_while(fake: FakeBuckets, method: CopyMethod, give_up: Event) -> None:
    """Copy an object for a batch that is released once `give_up` is set."""
    context, options = context_of(give_up), options_of(method)
    with fake.serving(), pytest.raises(BatchReleased):
        run_copies(context, lambda key: copy_object(fake.s3, options, key, NEW), [OLD])
    assert fake.production == {}


def test_a_batch_that_is_released_sends_nothing_after_the_request_that_is_under_way() -> None:
    fake, held = fake_with(), Event()
    hold(fake, "GetObject", held=held.set)
    release_while(fake, StreamCopy(), held)
    assert fake.operations == ["GetObject legacy"]


def test_a_batch_that_is_released_sends_nothing_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "pause_before_retry", lambda *_: timedelta(hours=1))
    fake, refused = fake_with(), Event()

    def interfere(_request: Request) -> Response:
        refused.set()
        return BUSY

    fake.interfere = interfere
    release_while(fake, StreamCopy(), refused)
    assert fake.operations == ["GetObject legacy"]


@pytest.mark.parametrize(
    ("method", "held_at"),
    [(ServerCopy("legacy", 4), "UploadPartCopy"), (StreamCopy(threshold_bytes=4), "UploadPart")],
    ids=["server", "stream"],
)
def test_the_uploads_of_a_batch_that_is_released_are_aborted(method: CopyMethod, held_at: str) -> None:
    fake, held = fake_with(LARGE), Event()
    hold(fake, held_at, held=held.set)
    release_while(fake, method, held)
    assert fake.operations[-1] == "AbortMultipartUpload production"
    assert fake.uploads == {}


def test_an_upload_whose_completion_is_under_way_is_left_alone_when_its_batch_is_released() -> None:
    """The server may complete it all the same."""
    method = StreamCopy(threshold_bytes=4)
    fake, held = fake_with(LARGE), Event()
    hold(fake, "CompleteMultipartUpload", held=held.set)
    release_while(fake, method, held)
    assert "AbortMultipartUpload production" not in fake.operations


def test_a_slot_hears_of_a_copy_that_ends_with_an_unexpected_timeout() -> None:
    """It is not taken for one of the slot's own short waits, which would never end."""
    give_up = Event()

    async def copy(_key: str) -> CopyResult:
        asyncio.get_running_loop().call_later(2, give_up.set)
        raise TimeoutError("a mistake")

    with pytest.raises(TimeoutError, match="a mistake"):
        run_copies(context_of(give_up), copy, [OLD])


async def cancel_held(fake: FakeBuckets, copy: Coroutine[Any, Any, CopyResult], *operations: str) -> None:
    """Start a copy, and cancel it once a request of these operations, or an abort, has been left without a response."""
    held = asyncio.Event()
    hold(fake, "AbortMultipartUpload", *operations, held=lambda: event_loop.call_soon(held.set))
    task = asyncio.ensure_future(copy)
    await held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_abort_that_gets_no_response_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be sent again and again for a batch that others may have by now."""
    monkeypatch.setattr(upload, "ABORT_WITHIN", timedelta(seconds=0.05))
    method = StreamCopy(threshold_bytes=4)
    fake = fake_with(LARGE)

    async def test() -> None:
        await cancel_held(fake, copy_object(fake.s3, options_of(method), OLD, NEW), "UploadPart")
        await asyncio.sleep(0)
        assert fake.clients["production"].waiting_since is None

    fake.run(test())
    assert fake.operations.count("AbortMultipartUpload production") == 1


def test_a_copy_that_is_cancelled_during_an_abort_overwrites_nothing_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The object that stopped the upload may be what another worker has written for the batch meanwhile."""
    monkeypatch.setattr(upload, "ABORT_WITHIN", timedelta(seconds=0.05))
    method = StreamCopy(threshold_bytes=4)
    fake = fake_with(LARGE)
    fake.before = lambda request: (
        fake.production.update({NEW: stored(b"another!!!")}) if request.operation == "UploadPart" else None
    )
    options = options_of(method, on_conflict="overwrite")
    fake.run(cancel_held(fake, copy_object(fake.s3, options, OLD, NEW)))
    assert fake.operations[-1] == "AbortMultipartUpload production"
    assert fake.production[NEW].body == b"another!!!"
