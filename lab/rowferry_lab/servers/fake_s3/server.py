"""A fake S3 server: objects in memory, a set latency, little CPU. For the sweep, the benches and the tests.

    python -m rowferry_lab.servers.fake_s3 --port 9000 [--latency-seconds 0.07] [--writes-per-second 1000]

It does not check signatures, nor checksums other than Content-MD5. It forgets everything when it ends. Beside S3:

- `PUT /_latency?seconds=0.07`, `PUT /_limits?writes_per_second=1000` and `PUT /_link?total_bytes_per_second=4e7` change
  what settings.py lists; what is not named has its default again.
- `PUT /_outage?seconds=3` ends all connections and refuses new ones for so long; with `&silent=1` it keeps them and
  says nothing.
- `GET /_stats` returns, as JSON: the requests answered, the objects stored, the CPU seconds used, the clock, open
  connections, bytes, and the requests accepted and refused by operation, writes by access key as well.

For benches, `--body-bytes` fills the bucket `legacy` with an object under every key that ends in .png; a listing shows
`--objects` of them. With several sizes (20000,4000000) the key decides which one it has. The same bytes under
the same name are neither copied nor hashed when they are written; other bodies of parts are hashed and not kept.
"""

import argparse
import asyncio
import errno
import json
import ssl
import time
from collections.abc import Callable
from typing import Any

import uvloop

from rowferry_lab.servers.fake_s3.api import FakeApi
from rowferry_lab.servers.fake_s3.body import Body
from rowferry_lab.servers.fake_s3.connection import Connection, Meter
from rowferry_lab.servers.fake_s3.http import Request, Response, refuse, respond
from rowferry_lab.servers.fake_s3.latency import DelayedWrites, LatencyModel
from rowferry_lab.servers.fake_s3.limits import Admission
from rowferry_lab.servers.fake_s3.settings import (
    Deviations,
    Latency,
    Limits,
    Link,
    add_options,
    read_options,
    read_query,
)
from rowferry_lab.servers.fake_s3.store import Store
from rowferry_lab.servers.fake_s3.uniform import make_uniform_store

BACKLOG = 4096
OUTAGE_BEGINS_SECONDS = 0.02
"""So late that the response to the request for it has left."""
LISTEN_AGAIN_SECONDS = 0.05
"""After an outage, while somebody has the port for a connection of his own."""


class FakeS3:
    """The server: what it stores, how it responds, and what it has been asked."""

    def __init__(
        self,
        store: Store | None = None,
        deviations: Deviations | None = None,
        *,
        latency: Latency | None = None,
        limits: Limits | None = None,
        link: Link | None = None,
        seed: int = 1,
    ) -> None:
        """Begin with this store and this behaviour."""
        self.before: Callable[[Request], object] | None = None
        """Called with each request before it is answered."""
        self.store = store or Store()
        self.link = link or Link()
        self.up, self.down = Meter(), Meter()
        self.silent_until = 0.0
        self.connections: set[Connection] = set()
        self._deviations = deviations or Deviations()
        self._api = FakeApi(self.store, self._deviations)
        self._latency = LatencyModel(latency or Latency(), seed)
        self._admission = Admission(limits or Limits(), seed)
        self._requests = 0
        self.bytes_received = 0
        self._bytes_accepted = 0
        self._listening: list[tuple[asyncio.Server, int, ssl.SSLContext | None]] = []

    def begin(self, request: Request) -> bytes | None:
        """Refuse a write whose condition does not hold, where the server looks that early."""
        return self._api.refuse_early(request)

    def respond(self, request: Request, connection: Connection) -> None:
        """Decide about a request and send the response to the connection when it is due."""
        now = self._loop.time()
        if request.bucket.startswith("_"):
            connection.write(self._control(request))
            return
        response = self.answer(request, now)
        seconds = self._latency.draw()
        if seconds or now < self.silent_until:
            self._delayed.send(connection, response, max(now + seconds, self.silent_until))
        else:
            connection.write(response)

    def answer(self, request: Request, now: float) -> Response:
        """Return the response to a request of S3 that came at `now`, on a clock that never goes back."""
        self._requests += 1
        if self.before is not None:
            self.before(request)
        if self._admission.admit(request, now):
            self._bytes_accepted += request.size
            return self._api.answer(request)
        seconds = self._admission.limits.retry_after
        return refuse(request, 503, "SlowDown", b"retry-after: %d\r\n" % seconds if seconds else b"")

    def _control(self, request: Request) -> bytes:
        """Return the response to a request about the server itself."""
        try:
            match request.bucket:
                case "_stats":
                    return respond(200, json.dumps(self.read_stats()).encode(), b"content-type: application/json\r\n")
                case "_latency":
                    self._latency.set_latency(read_query(Latency, request.query))
                case "_limits":
                    self._admission.set_limits(read_query(Limits, request.query))
                case "_link":
                    self.link = read_query(Link, request.query)
                case "_outage":
                    seconds = float(request.query["seconds"])
                    begin = self._fall_silent if request.query.get("silent") == "1" else self._refuse_connections
                    self._loop.call_later(OUTAGE_BEGINS_SECONDS, begin, seconds)
                case _:
                    return respond(404)
        except (KeyError, ValueError):
            return respond(400)
        return respond(204)

    def read_stats(self) -> dict[str, Any]:
        """Return the counts since the start; `seconds` is a clock to take rates by."""
        return {
            "requests": self._requests,
            "objects": self.store.count_objects(),
            "cpu_seconds": time.process_time(),
            "seconds": time.monotonic(),
            "connections": len(self.connections),
            "bytes_received": self.bytes_received,
            "bytes_accepted": self._bytes_accepted,
            **self._admission.describe(),
        }

    # Connections

    async def listen(self, port: int, tls: ssl.SSLContext | None = None) -> asyncio.Server:
        """Listen on a port of 127.0.0.1; 0 stands for a free one."""
        self._loop = asyncio.get_running_loop()
        if not self._listening:
            self._delayed = DelayedWrites(self._loop)
        server = await self._loop.create_server(
            lambda: Connection(self, self._loop), "127.0.0.1", port, backlog=BACKLOG, ssl=tls
        )
        self._listening.append((server, server.sockets[0].getsockname()[1], tls))
        return server

    def take_connection(self, connection: Connection) -> None:
        """Count the connection as open."""
        self.connections.add(connection)

    def drop_connection(self, connection: Connection) -> None:
        """Count it as closed."""
        self.connections.discard(connection)

    def take_cut_off(self, body: Body) -> None:
        """Forget the body, or keep it as a part, where the server deviates so."""
        if self._deviations.keeps_cut_parts and body.operation == "UploadPart":
            self._api.answer(body.fill())

    def _fall_silent(self, seconds: float) -> None:
        self.silent_until = self._loop.time() + seconds
        self._delayed.hold_until(self.silent_until)

    def _refuse_connections(self, seconds: float) -> None:
        ports = [(port, tls) for _, port, tls in self._listening]
        for server, _, _ in self._listening:
            server.close()
        self._listening.clear()
        for connection in list(self.connections):
            connection.abort()
        self._loop.call_later(seconds, lambda: self._loop.create_task(self._listen_again(ports)))

    async def _listen_again(self, ports: list[tuple[int, ssl.SSLContext | None]]) -> None:
        for port, tls in ports:
            while not await self._has_port(port, tls):
                await asyncio.sleep(LISTEN_AGAIN_SECONDS)

    async def _has_port(self, port: int, tls: ssl.SSLContext | None) -> bool:
        """Listen again on a port; return whether that could be: somebody may connect from it just now."""
        try:
            await self.listen(port, tls)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True


async def serve(server: FakeS3, port: int) -> None:
    """Print the port and serve until the process ends."""
    listening = await server.listen(port)
    print(json.dumps({"port": listening.sockets[0].getsockname()[1]}), flush=True)  # noqa: T201
    await asyncio.Event().wait()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--body-bytes", help="sizes, with commas between")
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    options = parser.parse_args()
    sizes = [int(size) for size in options.body_bytes.split(",")] if options.body_bytes else []
    store = make_uniform_store(sizes, options.objects) if sizes else Store()
    uvloop.run(serve(FakeS3(store, seed=options.seed, **read_options(options)), options.port))
