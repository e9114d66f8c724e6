"""Two buckets of the fake S3 server with a worker's clients of them; a test says what the server does otherwise."""

import ssl
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar
from unittest.mock import patch

from botocore.credentials import Credentials

from rowferry.http import event_loop
from rowferry.plan import LegacySide, ProductionSide, SideName
from rowferry.s3 import retry
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request as SentRequest
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3 import http
from rowferry_lab.servers.fake_s3.connection import Connection
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import Bucket, Store, StoredObject, Upload, compute_md5, make_object
from rowferry_worker.objects.requests import ObjectRequests
from support.s3.deviations import WRITES, Deviations, changed
from support.s3.fake_s3 import DeviantConnection, DeviantS3, endpoint_at, serve_on_thread

T = TypeVar("T")
Objects = dict[str, StoredObject]

WITHIN = timedelta(seconds=100)
WRITING = WRITES
RGW = ("PutObject",)
"""What Ceph RGW 16 and gofakes3 honour."""
LOST = Response(0)
"""No response: the connection is closed."""
HELD = Response(-1)
"""No response: the connection stays open."""


class FakeBuckets(DeviantS3):
    """The buckets `legacy` and `production`; `honours`: the operations that heed If-None-Match."""

    def __init__(
        self,
        honours: Collection[str] = (),
        legacy: Objects | None = None,
        production: Objects | None = None,
        **deviations: Any,
    ) -> None:
        super().__init__(Store(), Deviations(if_none_match=frozenset(honours), **deviations))
        self.store.buckets |= {"legacy": Bucket(), "production": Bucket()}
        self.legacy |= legacy or {}
        self.production |= production or {}
        self.seen: list[Request] = []
        self.interfere: Callable[[Request], Response | None] = lambda _: None
        """Returns the response, LOST or HELD in the place of the server's own; called on the server's thread."""
        self.interfere_early: Callable[[Request], Response | None] = lambda _: None
        """Returns the response to a request that is refused before its body is read."""
        self.connection: DeviantConnection
        """That of the request which `interfere` is asked about."""
        self.cut_off: list[Request] = []
        """Requests whose connections ended in their bodies."""
        self._failure: BaseException | None = None
        self.clients: dict[SideName, ObjectClient] = {}

    @property
    def legacy(self) -> Objects:
        return self.store.buckets["legacy"].objects

    @legacy.setter
    def legacy(self, objects: Objects) -> None:
        self.store.buckets["legacy"].objects = objects

    @property
    def production(self) -> Objects:
        return self.store.buckets["production"].objects

    @production.setter
    def production(self, objects: Objects) -> None:
        self.store.buckets["production"].objects = objects

    @property
    def uploads(self) -> dict[str, Upload]:
        return self.store.uploads

    @property
    def operations(self) -> list[str]:
        return [f"{request.operation} {request.bucket}" for request in self.seen]

    @property
    def s3(self) -> ObjectRequests:
        return ObjectRequests(self.send)

    def deviate(self, **changes: Any) -> None:
        """Behave otherwise from now on."""
        self.api.deviations = replace(self.api.deviations, **changes)

    def carry_out(self, request: Request) -> bytes:
        """Do what a request asks for, and return the response that the server would send."""
        return b"".join(self.api.answer(request).render())

    def begin(self, request: Request) -> http.Response | None:
        """Refuse what the test says, else what S3 does."""
        self.seen.append(request)
        own = super().begin(request)
        try:
            instead = self.interfere_early(request)
        except BaseException as failure:  # noqa: BLE001 - raised by the thread of the test
            self._failure = failure
            return http.Response(500)
        return own if instead is None else as_served(instead, request)

    def take_cut_off(self, request: Request, missing: int) -> None:
        """Note the request."""
        self.cut_off.append(request)
        super().take_cut_off(request, missing)

    def respond(self, request: Request, connection: Connection) -> None:
        """Respond as the test says, else as S3 does."""
        assert isinstance(connection, DeviantConnection)
        self.connection = connection
        try:
            instead = self.interfere(request)
            if instead is None:
                super().respond(request, connection)
            elif instead is LOST:
                connection.abort()
            elif instead is not HELD:
                connection.write(as_served(instead, request))
        except BaseException as failure:  # noqa: BLE001 - raised by the thread of the test
            self._failure = failure
            connection.abort()

    def run(self, copy: Coroutine[Any, Any, T]) -> T:
        """Run a copy to its end, without pauses, and return its result; raises what it raises."""
        with self.serving():
            return event_loop.run(copy, WITHIN)

    @contextmanager
    def serving(self, *, tls: ssl.SSLContext | None = None) -> Iterator[None]:
        """Serve until the block ends; no retry waits. Raises what the test's functions have raised."""
        with serve_on_thread(self, tls) as url, patch.object(retry, "REQUEST_BASE", timedelta(0)):
            for side in (LegacySide("legacy", endpoint_url=url), ProductionSide("production", endpoint_url=url)):
                self.clients[side.name] = ObjectClient(
                    side,
                    Credentials("AK", "SK"),
                    endpoint=resolve_endpoint(side) if tls else endpoint_at(url),
                    max_in_flight=4,
                    deadline=WITHIN,
                )
            try:
                yield
            finally:
                for client in self.clients.values():
                    client.close()
                if self._failure is not None:
                    raise self._failure

    async def send(self, request: SentRequest) -> Response:
        return await self.clients[request.side].send(request)


def stored(
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    etag: str = "",
    tags: Mapping[str, str] | None = None,
    written: float | None = None,
) -> StoredObject:
    """Return an object; `written`: in seconds since 1970."""
    made = make_object(body, dict(headers or {}), dict(tags or {}))
    return changed(made, etag=etag or made.etag, written=made.written if written is None else written)


def headers_of(found: StoredObject) -> dict[str, str]:
    """Return the headers by which a HEAD describes an object."""
    lines = found.description.decode("latin-1").splitlines()
    return {**dict(line.split(": ", 1) for line in lines), "content-length": str(found.size)}


def refuse(status: int, code: str, **headers: str) -> Response:
    """Return S3's error; the names of headers are written with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, named, f"<Error><Code>{code}</Code><Message>as told</Message></Error>".encode())


def as_served(response: Response, request: Request) -> http.Response:
    """Return a response as a server sends it. Its length is the body's; to a HEAD it is what the headers say."""
    lines = [f"{name}: {value}\r\n" for name, value in response.headers.items() if name != "content-length"]
    is_head = request.method == "HEAD"
    length = int(response.headers.get("content-length", -1)) if is_head else None
    return http.Response(response.status, b"" if is_head else response.body, "".join(lines).encode(), length)


def composite(*parts: bytes) -> str:
    """Return the ETag of an object made of these parts."""
    return compute_md5(b"".join(bytes.fromhex(compute_md5(part)) for part in parts)) + f"-{len(parts)}"
