"""Two small S3 servers between which objects are streamed, each as unkind as a test wants it."""

import asyncio
import base64
import hashlib
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from unittest.mock import patch

from botocore.credentials import Credentials

from rowferry.http import event_loop
from rowferry.plan import LegacySide, ProductionSide
from rowferry.s3 import retry
from rowferry.s3.client import ObjectClient
from rowferry.s3.endpoint import resolve_endpoint
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport
from rowferry_worker.objects.copy import CopyOptions, CopyResult, copy_object
from rowferry_worker.objects.properties import Properties
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.objects.tags import Tagging
from rowferry_worker.objects.transfer import StreamCopy

OLD, NEW = "image/a.png", "avatar/a.png"
SECONDS = timedelta(seconds=60)


def md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def flip(body: bytes) -> bytes:
    """Return the body with one bit of its last byte changed."""
    return body[:-1] + bytes([body[-1] ^ 1])


Deviation = Callable[["Handler", bytes], bytes | None]
"""Is given the body that would be sent, or has come; returns the one to go on with, or None where it has responded."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.deviations: deque[Deviation] = deque()
        """Each takes the place of the response to one GET or PUT of an object."""
        self.refusals: deque[int] = deque()
        """Statuses by which PUTs are refused before their bodies are read."""
        self.checks_md5 = True
        self.looks_first = False
        """Whether If-None-Match is held against what stands there before the body is read, and not again."""
        self.etag_of: Callable[[bytes], str] = md5
        self.seen: list[str] = []
        self.put_headers: list[dict[str, str]] = []

    def put(self, key: str, body: bytes, **headers: str) -> None:
        self.objects[key] = (body, {"ETag": f'"{self.etag_of(body)}"', **headers})

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has left is none."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def store(self) -> Server:
        return cast("Server", self.server)

    @property
    def key(self) -> str:
        return self.path.partition("?")[0].split("/", 2)[2]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def respond(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None, *, length: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.respond(status, f"<Error><Code>{code}</Code></Error>".encode())

    def do_HEAD(self) -> None:
        self.store.seen.append("HEAD")
        found = self.store.objects.get(self.key)
        if found is None:
            self.respond(404)
        else:
            self.respond(200, b"", found[1], length=len(found[0]))

    def do_GET(self) -> None:
        self.store.seen.append("GET")
        found = self.store.objects.get(self.key)
        if found is None:
            return self.refuse(404, "NoSuchKey")
        body: bytes | None = found[0]
        if (pin := self.headers.get("If-Match")) is not None and pin != found[1]["ETag"]:
            return self.refuse(412, "PreconditionFailed")
        if self.store.deviations:
            body = self.store.deviations.popleft()(self, found[0])
        if body is None:
            return None
        span = self.headers.get("Range")
        if span is None:
            return self.respond(200, body, found[1])
        first, last = map(int, span.removeprefix("bytes=").split("-"))
        part = body[first : last + 1]
        told = f"bytes {first}-{first + len(part) - 1}/{len(body)}"
        return self.respond(206, part, {"Content-Range": told, **found[1]})

    def do_PUT(self) -> None:
        self.store.seen.append("PUT")
        turn = len(self.store.seen) - 1
        self.store.put_headers.append(dict(self.headers))
        if self.store.refusals:
            return self._refuse_unread(self.store.refusals.popleft())
        exists = self.key in self.store.objects
        length = int(self.headers["Content-Length"])
        body: bytes | None = self.rfile.read(length)
        assert body is not None
        if len(body) < length:
            self.store.seen[turn] = "PUT cut off"
            self.close_connection = True
            return None
        if self.store.deviations:
            body = self.store.deviations.popleft()(self, body)
        if body is None:
            return None
        return self._write(body, exists if self.store.looks_first else None)

    def _refuse_unread(self, status: int) -> None:
        """Refuse before the body is read, and close as servers do: a reset would throw the refusal away."""
        self.close_connection = True
        self.refuse(status, "AsTold")
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(SECONDS.total_seconds())
            while self.connection.recv(1 << 20):
                pass

    def _write(self, body: bytes, exists: bool | None) -> None:
        promised = self.headers.get("Content-MD5")
        if self.store.checks_md5 and promised is not None and bytes.fromhex(md5(body)) != base64.b64decode(promised):
            return self.refuse(400, "BadDigest")
        found = self.store.objects.get(self.key)
        if self.headers.get("If-None-Match") == "*" and (found is not None if exists is None else exists):
            return self.refuse(412, "PreconditionFailed")
        pin = self.headers.get("If-Match")
        if pin is not None and found is None:
            return self.refuse(404, "NoSuchKey")  # as Amazon S3 does
        if pin is not None and found is not None and pin != found[1]["ETag"]:
            return self.refuse(412, "PreconditionFailed")
        self.store.put(self.key, body)
        return self.respond(200, b"", self.store.objects[self.key][1])


@dataclass
class Pair:
    """Two servers and a worker's clients of them."""

    legacy: Server
    production: Server
    options: CopyOptions
    clients: dict[str, ObjectClient] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)

    @property
    def support(self) -> ConditionalWriteSupport:
        return self.options.support

    @property
    def written(self) -> bytes | None:
        found = self.production.objects.get(NEW)
        return found and found[0]

    def copy(self) -> CopyResult:
        """Copy the object once, without long pauses."""
        with patch.object(retry, "REQUEST_BASE", timedelta(0)):
            return event_loop.run(copy_object(self.requests(), self.options, OLD, NEW), SECONDS)

    def requests(self) -> ObjectRequests:
        return ObjectRequests(self.send, record=self.record)

    async def send(self, request: Request) -> Response:
        return await self.clients[request.side].send(request)

    def record(self, request: Request, result: Any, seconds: float, *, again: bool) -> None:
        del seconds, again
        word = "ok" if isinstance(result, Response) else type(result).__name__
        self.recorded.append(f"{request.operation} {word}")

    def assert_nothing_open(self) -> None:
        """No connection is left in a stream, and no memory held."""
        event_loop.run(asyncio.sleep(0), SECONDS)
        for client in self.clients.values():
            assert not client._pool._streaming
            assert client.waiting_since is None
        method = self.options.method
        assert isinstance(method, StreamCopy)
        assert method._bodies.held_bytes == 0


@contextmanager
def running_pair(tls: ssl.SSLContext | None = None, deadline: timedelta = SECONDS) -> Iterator[Pair]:
    """Run two servers; the worker knows that the production server heeds If-None-Match, and no more."""
    legacy, production = Server(), Server()
    scheme = "https" if tls else "http"
    threads: list[threading.Thread] = []
    for server in (legacy, production):
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threads.append(threading.Thread(target=server.serve_forever, args=[0.05], daemon=True))
        threads[-1].start()
    support = ConditionalWriteSupport("new", {"PutObject": True})
    tagging = Tagging()
    tagging._announced = "yes"
    pair = Pair(legacy, production, CopyOptions(StreamCopy(), support, "fail", Properties(tagging=tagging)))
    for name, kind, server in (("legacy", LegacySide, legacy), ("production", ProductionSide, production)):
        side = kind("bucket", endpoint_url=f"{scheme}://127.0.0.1:{server.server_address[1]}")
        pair.clients[name] = ObjectClient(
            side,
            Credentials("AK", "SK"),
            endpoint=resolve_endpoint(side),
            max_in_flight=4,
            deadline=deadline,
            max_body_bytes=8 * 1024 * 1024,
        )
    try:
        yield pair
    finally:
        for client in pair.clients.values():
            client.close()
        for server, thread in zip((legacy, production), threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join(10)
