"""The lab's fake S3 server in a thread of this process, with deviations, and one store behind several addresses."""

import asyncio
import atexit
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Thread
from typing import cast
from urllib.parse import urlsplit

import uvloop

from rowferry.s3.access.endpoint import Endpoint
from rowferry_lab.servers.fake_s3.connection import Connection
from rowferry_lab.servers.fake_s3.http import Request, Response
from rowferry_lab.servers.fake_s3.server import FakeS3
from rowferry_lab.servers.fake_s3.store import Store
from rowferry_lab.servers.s3_servers import FakeS3Server
from support.s3.deviations import DeviantApi, Deviations

SLICE_BYTES = 64 * 1024
"""What is sent at a time over a link with a rate, and what the kernel keeps for such a connection."""


@dataclass(frozen=True, slots=True)
class Link:
    """Bytes a second in each direction. 0: no bound."""

    connection_bytes_per_second: float = 0.0


class DeviantS3(FakeS3):
    """The server. A slow link is set before a connection is opened."""

    def __init__(self, store: Store, deviations: Deviations) -> None:
        self.api = DeviantApi(store, deviations)
        super().__init__(self.api)
        self.make_connection = DeviantConnection
        self.before: Callable[[Request], object] | None = None
        """Called with each request before it is answered."""
        self.link = Link()
        self.bytes_received = 0

    def answer(self, request: Request, now: float) -> Response:
        if self.before is not None:
            self.before(request)
        return super().answer(request, now)

    def begin(self, request: Request) -> Response | None:
        """Return the response to a request that is refused before its body is read; None for all others."""
        return self.api.refuse_early(request)

    def take_cut_off(self, request: Request, missing: int) -> None:
        """Forget a request whose connection ended in its body, or keep it as a part, where the server deviates so."""
        if self.api.deviations.keeps_cut_parts and request.operation == "UploadPart":
            request.body += bytes(missing)
            self.api.answer(request)


class DeviantConnection(Connection):
    """A connection with a rate, which may be refused before its body is read."""

    def __init__(self, server: FakeS3) -> None:
        super().__init__(server)
        self._deviant = cast("DeviantS3", server)
        self._slices: deque[bytes] = deque()
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._deviant.link.connection_bytes_per_second:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLICE_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._slices.clear()
        if self._request is not None:
            self._request.body = b"".join(self._pieces)
            self._deviant.take_cut_off(self._request, self._missing)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._deviant.bytes_received += len(data)
        rate = self._deviant.link.connection_bytes_per_second
        if rate:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(len(data) / rate, self._resume_reading)
        super().data_received(data)

    def close(self) -> None:
        """End the connection once all is sent."""
        self._transport.close()

    def _resume_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _read_head(self, data: bytes) -> bytes:
        rest = super()._read_head(data)
        return b"" if self._is_refused else rest

    def begin(self, request: Request, length: int) -> None:
        refusal = self._deviant.begin(request)
        if refusal is None:
            super().begin(request, length)
            return
        self._is_refused = True  # what still comes is read: a reset would throw the response away
        self.write(refusal)
        self._transport.write_eof()

    def write(self, response: Response | bytes) -> None:
        if self._transport.is_closing():
            return
        whole = response if isinstance(response, bytes) else b"".join(response.render())
        if not self._deviant.link.connection_bytes_per_second:
            self._transport.write(whole)
            return
        is_sending = bool(self._slices)
        self._slices.extend(whole[first : first + SLICE_BYTES] for first in range(0, len(whole), SLICE_BYTES))
        if not is_sending:
            self._send_slice()

    def _send_slice(self) -> None:
        """Send the first slice; it is forgotten when it has passed."""
        if not self._slices or self._transport.is_closing():
            return
        rate = self._deviant.link.connection_bytes_per_second
        self._transport.write(self._slices[0])
        seconds = len(self._slices[0]) / rate if rate else 0
        asyncio.get_running_loop().call_later(seconds, self._end_slice)

    def _end_slice(self) -> None:
        if self._slices:
            self._slices.popleft()
            self._send_slice()


class FakeAddress(FakeS3Server):
    """One address of the fake, which behaves there as told."""

    def __init__(self, fake: DeviantS3, endpoint_url: str) -> None:
        super().__init__()
        self.fake, self.endpoint_url = fake, endpoint_url


@contextmanager
def running_fakes(*behaviours: Deviations, store: Store | None = None) -> Iterator[list[FakeAddress]]:
    """Yield one address for each of the behaviours; all show the same buckets, those of `store` where it is given."""
    store = store or Store()
    with ExitStack() as until:
        fakes = [DeviantS3(store, deviations) for deviations in behaviours]
        yield [FakeAddress(fake, until.enter_context(serve_on_thread(fake))) for fake in fakes]


def endpoint_at(url: str) -> Endpoint:
    """Return what `resolve_endpoint` finds for the URL of a server here, without botocore, which takes 15 ms for it."""
    parts = urlsplit(url)
    return Endpoint("http", parts.hostname or "", parts.port or 80, base_path="", virtual_host=False)


@cache
def server_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that serves whatever `serve_on_thread` is told to, one after the other."""
    loop = uvloop.new_event_loop()
    thread = Thread(target=loop.run_forever, name="fake S3", daemon=True)
    thread.start()
    atexit.register(loop.call_soon_threadsafe, loop.stop)
    return loop


@contextmanager
def serve_on_thread(fake: FakeS3, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Have a fake serve until the block ends, and yield its address."""
    loop = server_loop()
    server = asyncio.run_coroutine_threadsafe(fake.listen(0, ssl=tls), loop).result(100)

    async def stop() -> None:
        server.close()
        for connection in list(fake.connections):
            connection.abort()
        await asyncio.sleep(0)

    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(100)
