"""Objects streamed between two buckets of the fake S3 server: each GET or PUT may meet what a test has in store."""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rowferry.http import event_loop
from rowferry.plan import SideName
from rowferry.s3.operations import Request as SentRequest
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3 import http
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.properties.settle import Properties
from rowferry_worker.properties.tags import Tagging
from support.s3.copies import NEW, OLD
from support.s3.fake_buckets import HELD, LOST, WRITING, FakeBuckets, headers_of, stored

SECONDS = timedelta(seconds=60)

Deviation = Callable[["Pipe", Request], Response | None]
"""Is what `FakeBuckets.interfere` is; it may as well change the body of a PUT."""


def flip(body: bytes) -> bytes:
    """Return the body with one bit of its last byte changed."""
    return body[:-1] + bytes([body[-1] ^ 1])


def keep(_pipe: "Pipe", _request: Request) -> None:
    """Change nothing."""


def corrupt(pipe: "Pipe", request: Request) -> Response | None:
    """Change a bit on the way."""
    if request.method == "GET":
        found = pipe.legacy[request.key]
        return Response(200, headers_of(found), flip(found.body))
    request.body = flip(request.body)
    return None


def cut_off(pipe: "Pipe", request: Request) -> Response:
    """Send half of the body, or take the whole, and close."""
    if request.method == "PUT":
        return LOST
    pipe.send_first(pipe.legacy[request.key].size // 2)
    pipe.connection.close()
    return HELD


class Pipe(FakeBuckets):
    """The worker knows that the server heeds If-None-Match, and no more."""

    def __init__(self, body: bytes) -> None:
        super().__init__(WRITING)
        self.put("legacy", OLD, body)
        self.deviations: dict[str, deque[Deviation]] = {"legacy": deque(), "production": deque()}
        """By side: each is for one GET or PUT of an object."""
        self.interfere = self._deviate_once
        tagging = Tagging()
        tagging._announced = dict.fromkeys((False, True), "yes")
        self.support = ConditionalWriteSupport("new", {"PutObject": True})
        self.method = StreamCopy()
        self.options = CopyOptions(self.method, self.support, "fail", Properties(tagging=tagging))
        self.recorded: list[str] = []
        """What a worker would count: operations and how each ended."""

    def _deviate_once(self, request: Request) -> Response | None:
        if request.operation in {"GetObject", "PutObject"} and self.deviations[request.bucket]:
            return self.deviations[request.bucket].popleft()(self, request)
        return None

    def put(self, side: SideName, key: str, body: bytes, **more: Any) -> None:
        (self.legacy if side == "legacy" else self.production)[key] = stored(body, **more)

    def send_first(self, size: int) -> None:
        """Send the headers of the legacy object and so many bytes of it."""
        found = self.legacy[OLD]
        self.connection.write(http.Response(200, found.body[:size], found.description, found.size))

    @property
    def written(self) -> bytes | None:
        found = self.production.get(NEW)
        return found and found.body

    def methods(self, side: SideName) -> list[str]:
        """Return the methods of the requests to a side; of those that were not sent to their end, that as well."""
        seen = [request for request in self.seen if request.bucket == side]
        return [request.method + (" cut off" if request in self.cut_off else "") for request in seen]

    def copy(self) -> CopyResult:
        """Copy the object once."""
        return event_loop.run(copy_object(self.requests(), self.options, OLD, NEW), SECONDS)

    def requests(self) -> ObjectRequests:
        return ObjectRequests(self.send, self)

    def reserve(self, _side: SideName, _operation: str) -> timedelta:
        """Let no request wait."""
        return timedelta()

    def record(self, request: SentRequest, result: Any, seconds: float) -> None:
        del seconds
        word = "ok" if isinstance(result, Response) else type(result).__name__
        self.recorded.append(f"{request.operation} {word}")

    def assert_nothing_open(self) -> None:
        """No connection is left in a stream, and no memory held."""
        event_loop.run(asyncio.sleep(0), SECONDS)
        for client in self.clients.values():
            assert not client._pool._streaming
            assert client.waiting_since is None
        assert self.method._bodies.held_bytes == 0
