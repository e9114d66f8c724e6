"""Each try of a request takes its turn and is recorded once; a write is checked before each of its tries."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from rowferry.errors import ObjectError, Throttled
from rowferry.plan import SideName
from rowferry.s3 import retry
from rowferry.s3.operations import Request, head_object, put_object
from rowferry.s3.responses import Response
from rowferry_worker.monitoring import metrics
from rowferry_worker.objects import requests
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport
from rowferry_worker.objects.intents import Protect, Target, write_object
from rowferry_worker.objects.requests import ObjectRequests, read_etag

HEAD, PUT = head_object("production", "k"), put_object("k", b"", if_none_match=False)
FOUND = Response(200, {"etag": '"e"', "content-length": "0", "x-amz-request-id": "1"})
BUSY = Throttled("SlowDown", "")


@dataclass
class Server:
    """Gives the next of some results to each request, and hears of turns and ends as the pace does."""

    results: list[Response | ObjectError]
    waits: list[timedelta] = field(default_factory=list[timedelta])
    sent: list[Request] = field(default_factory=list[Request])
    turns: list[tuple[SideName, str]] = field(default_factory=list[tuple[SideName, str]])
    recorded: list[Response | ObjectError] = field(default_factory=list[Response | ObjectError])

    async def send(self, request: Request) -> Response:
        self.sent.append(request)
        result = self.results.pop(0)
        if isinstance(result, ObjectError):
            raise result
        return result

    def reserve(self, side: SideName, operation: str) -> timedelta:
        self.turns.append((side, operation))
        return self.waits.pop(0) if self.waits else timedelta(0)

    def record(self, _request: Request, result: Response | ObjectError, seconds: float) -> None:
        assert seconds >= 0
        self.recorded.append(result)

    @property
    def s3(self) -> ObjectRequests:
        return ObjectRequests(self.send, self)

    def write(self, support: ConditionalWriteSupport) -> tuple[str, Response]:
        return asyncio.run(write_object(Target(self.s3, support, "k"), Protect(), PUT, read_etag))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "pause_before_retry", lambda *_: timedelta(0))


def count_retries() -> float:
    return metrics.request_retries.labels("production")._value.get()


def test_each_try_takes_its_turn_and_is_recorded_and_counted() -> None:
    before, server = count_retries(), Server([BUSY, FOUND])
    assert asyncio.run(server.s3.send(HEAD)) is FOUND
    assert server.turns == [("production", "HeadObject")] * 2
    assert (server.recorded, count_retries() - before) == ([BUSY, FOUND], 1)


def test_a_turn_that_is_far_away_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate may have risen meanwhile; a turn that is near is waited for, and is taken."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(requests.asyncio, "sleep", sleep)
    server = Server([], [timedelta(seconds=seconds) for seconds in (3.0, 0.7, 0.1)])
    asyncio.run(server.s3.take_turn("production", "PutObject"))
    assert slept == [retry.LONGEST_TURN.total_seconds()] * 2 + [0.1]
    assert server.waits == []
