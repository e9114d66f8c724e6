"""After a pause the world may be another one: what writes looks again, and what was given up is not sent at all."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from journeys import NEW, OLD, shelves_with, way_of
from rowferry.batch import Outcome
from rowferry.errors import Cancelled
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.objects import patience
from rowferry_worker.objects.conditional_writes import Belief
from rowferry_worker.objects.copy import copy_object, overwrite
from rowferry_worker.objects.journey import Copied, Journey
from rowferry_worker.objects.scheduler import Ended, Flight
from rowferry_worker.objects.transfer import Carrier, ServerCopy, StreamCopy
from shelves import WRITING, Shelves, Stored, refuse

DEADLINE = timedelta(seconds=60)
LARGE = b"0123456789"
BUSY = refuse(503, "SlowDown")
LOST = refuse(0, "ConnectionLost")
CARRIERS = {
    "server": ServerCopy("old"),
    "stream": StreamCopy(),
    "server by parts": ServerCopy("old", 4),
    "stream by parts": StreamCopy(threshold_bytes=4),
}


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BASE", timedelta(milliseconds=1))


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> Carrier:
    return CARRIERS[request.param]


def fly(shelves: Shelves, journey: Journey) -> Ended | None:
    """Drive a journey as a worker does, with its patience; return how it ended."""
    flight = Flight(1)

    def send(request: Request, on_answer: Callable[[Answer], None]) -> None:
        flight.patience.alarm.call_later(timedelta(0), partial(on_answer, shelves.answer(request)))

    load = flight.launch(send, [journey])
    assert load.wait(DEADLINE)
    return load.ends[0]


def refuse_first(shelves: Shelves, answer: Answer, *, others: bytes | None = None, times: int = 1) -> None:
    """Answer the first write so; during the pause after it, the application writes an object of its own."""

    def interfere(request: Request) -> Answer | None:
        seen = sum(request.operation in WRITING for request in shelves.seen)
        if request.operation not in WRITING or seen > times:
            return None
        if others is not None:
            shelves.production[NEW] = Stored(others)
        return answer

    shelves.interfere = interfere


@pytest.mark.parametrize("answer", [BUSY, LOST], ids=["throttled", "lost"])
@pytest.mark.parametrize("belief", ["unknown", "ignored"])
def test_what_appears_before_a_write_is_sent_again_is_not_overwritten(
    answer: Answer, belief: Belief, carrier: Carrier
) -> None:
    shelves = shelves_with(LARGE, too_large_bytes=getattr(carrier, "_threshold_bytes", None) or 100)
    refuse_first(shelves, answer, others=b"another!!!")
    assert fly(shelves, copy_object(way_of(carrier, belief), OLD, NEW)) == Copied(Outcome.CONFLICT)
    assert shelves.production[NEW].body == b"another!!!"


@pytest.mark.parametrize("belief", ["unknown", "ignored", "honoured"])
def test_a_busy_server_is_asked_again_until_it_has_time(belief: Belief, carrier: Carrier) -> None:
    shelves = shelves_with(LARGE, too_large_bytes=getattr(carrier, "_threshold_bytes", None) or 100, honours=WRITING)
    refuse_first(shelves, BUSY, times=patience.TRIES - 1)
    end = fly(shelves, copy_object(way_of(carrier, belief), OLD, NEW))
    assert isinstance(end, Copied)
    assert end.outcome is Outcome.MIGRATED
    assert shelves.production[NEW].body == LARGE


def test_a_server_that_stays_busy_is_not_asked_for_ever(carrier: Carrier) -> None:
    shelves = shelves_with(LARGE, too_large_bytes=getattr(carrier, "_threshold_bytes", None) or 100)
    refuse_first(shelves, BUSY, times=1000)
    assert getattr(fly(shelves, copy_object(way_of(carrier), OLD, NEW)), "code", "") == "SlowDown"
    assert sum(request.operation in WRITING for request in shelves.seen) == patience.TRIES


def test_what_is_to_be_overwritten_is_overwritten_at_the_second_try_as_well(carrier: Carrier) -> None:
    shelves = shelves_with(LARGE, b"another!!!", too_large_bytes=getattr(carrier, "_threshold_bytes", None) or 100)
    refuse_first(shelves, BUSY)
    end = fly(shelves, overwrite(way_of(carrier), OLD, NEW))
    assert isinstance(end, Copied)
    assert end.outcome is Outcome.MIGRATED
    assert shelves.production[NEW].body == LARGE


def test_a_batch_that_was_given_back_sends_nothing_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waits for its next try is not under way, so nothing cancels it."""
    monkeypatch.setattr(patience, "LONGEST", timedelta(milliseconds=1))
    monkeypatch.setattr(patience, "TRIES", 10**9)
    shelves, give_up, flight = shelves_with(), Event(), Flight(1)
    shelves.interfere = lambda request: BUSY

    def send(request: Request, on_answer: Callable[[Answer], None]) -> None:
        flight.patience.alarm.call_later(timedelta(0), partial(on_answer, shelves.answer(request)))
        give_up.set()

    route = cast("Any", SimpleNamespace(look_out=lambda: None, cancel=lambda only=None: None))
    load = flight.launch(send, [copy_object(way_of(StreamCopy()), OLD, NEW)])
    nothing = cast("Any", None)
    with pytest.raises(BatchReleased):
        BatchContext(nothing, nothing, nothing, route, flight, give_up).wait_for(load)
    assert load.done.is_set()
    assert isinstance(load.ends[0], Cancelled)
