"""A fake S3 server: objects in memory, a set latency, little CPU. For the sweep, the benches and the pictures.

    python -m rowferry_lab.servers.fake_s3.server --port 9000 [--latency-seconds 0.07]

It checks neither signatures nor digests, and forgets everything when it ends. Beside S3:

- `PUT /_latency?seconds=0.07` and `PUT /_limits?writes_per_second=1000` change what settings.py lists; what is not
  named has its default again.
- `PUT /_outage?seconds=3` ends all connections and refuses new ones for so long; with `&silent=1` it keeps them and
  says nothing.
- `GET /_stats` returns counts as JSON: requests, objects, CPU seconds, the clock, and the writes
  accepted and refused by access key.

For benches, `--body-bytes` fills the bucket `legacy` with an object under every key that ends in .png; a listing shows
`--objects` of them. The same bytes are neither kept nor hashed again when they are written under such a key.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import uvloop
from msgspec import convert

from rowferry_lab.servers.fake_s3.api import FakeApi
from rowferry_lab.servers.fake_s3.connection import Connection
from rowferry_lab.servers.fake_s3.http import Request, Response, refuse
from rowferry_lab.servers.fake_s3.settings import Latency, Limits, TokenBucket
from rowferry_lab.servers.fake_s3.store import Store
from rowferry_lab.servers.fake_s3.uniform import make_uniform_store

BACKLOG = 4096
OUTAGE_BEGINS_SECONDS = 0.02
"""So late that the response to the request for it has left."""
LISTEN_AGAIN_SECONDS = 0.05
"""After an outage, while another process has the port for a connection of its own."""


class FakeS3:
    """The server: what it stores, how it responds, and what it has been asked."""

    def __init__(self, api: FakeApi, latency: Latency | None = None) -> None:
        """Begin with what this API stores."""
        self.store = api.store
        self.latency = latency or Latency()
        self.connections: set[Connection] = set()
        self.make_connection: Callable[[FakeS3], Connection] = Connection
        self._api = api
        self._dice = Random(1)  # noqa: S311 - to be repeatable, not to be secret
        self._accepted: Counter[str] = Counter()
        """Writes, by the access key of the client."""
        self._refused: Counter[str] = Counter()
        self._requests = 0
        self._silent_until = 0.0
        self._listening: asyncio.Server | None = None
        self.set_limits(Limits())

    def set_limits(self, limits: Limits) -> None:
        """Refuse other requests from now on; the counts stay."""
        self._limits = limits
        self._bounds: dict[str, TokenBucket] = {}
        """By bucket."""

    def respond(self, request: Request, connection: Connection) -> None:
        """Decide about a request and send the response to the connection when it is due."""
        if request.bucket.startswith("_"):
            connection.write(self._control(request))
            return
        response = self.answer(request, self._loop.time())
        seconds = self.latency.draw(self._dice)
        if seconds:
            self._loop.call_later(seconds, self._send, connection, response)
        else:
            self._send(connection, response)

    def answer(self, request: Request, now: float) -> Response:
        """Return the response to a request of S3 that came at `now`, on a clock that never goes back."""
        self._requests += 1
        return self._api.answer(request) if self.admit(request, now) else refuse(request, 503, "SlowDown")

    def admit(self, request: Request, now: float) -> bool:
        """Return whether a request is answered, and count it."""
        writes, limits = request.method not in {"GET", "HEAD"}, self._limits
        admitted = True
        if writes and limits.writes_per_second:
            admitted = self._bounds.setdefault(request.bucket, TokenBucket(limits)).take(now)
        if admitted and limits.refused_share:
            admitted = self._dice.random() >= limits.refused_share
        if writes:
            (self._accepted if admitted else self._refused)[request.account] += 1
        return admitted

    def _send(self, connection: Connection, response: Response) -> None:
        if self._loop.time() < self._silent_until:
            self._loop.call_at(self._silent_until, self._send, connection, response)
        else:
            connection.write(response)

    def _control(self, request: Request) -> Response:
        """Return the response to a request about the server itself."""
        try:
            match request.bucket:
                case "_stats":
                    return Response(200, json.dumps(self.read_stats()).encode(), b"content-type: application/json\r\n")
                case "_latency":
                    self.latency = convert(request.query, Latency, strict=False)
                case "_limits":
                    self.set_limits(convert(request.query, Limits, strict=False))
                case "_outage":
                    seconds = float(request.query["seconds"])
                    begin = self._fall_silent if request.query.get("silent") == "1" else self._refuse_connections
                    self._loop.call_later(OUTAGE_BEGINS_SECONDS, begin, seconds)
                case _:
                    return Response(404)
        except (KeyError, ValueError):
            return Response(400)
        return Response(204)

    def read_stats(self) -> dict[str, Any]:
        """Return the counts since the start; `seconds` is a clock to take rates by."""
        return {
            "requests": self._requests,
            "objects": sum(len(bucket.objects) for bucket in self.store.buckets.values()),
            "cpu_seconds": time.process_time(),
            "seconds": time.monotonic(),
            "writes_accepted": self._accepted,
            "writes_refused": self._refused,
        }

    # Connections

    async def listen(self, port: int, **more: Any) -> asyncio.Server:
        """Listen on a port of 127.0.0.1; 0 stands for a free one. `more` is what asyncio's create_server takes."""
        self._loop = asyncio.get_running_loop()
        self._listening = await self._loop.create_server(
            lambda: self.make_connection(self), "127.0.0.1", port, backlog=BACKLOG, **more
        )
        return self._listening

    def _fall_silent(self, seconds: float) -> None:
        self._silent_until = self._loop.time() + seconds

    def _refuse_connections(self, seconds: float) -> None:
        assert self._listening is not None
        port = self._listening.sockets[0].getsockname()[1]
        self._listening.close()
        for connection in list(self.connections):
            connection.abort()
        self._loop.call_later(seconds, lambda: self._loop.create_task(self._listen_again(port)))

    async def _listen_again(self, port: int) -> None:
        """Listen as soon as no other process connects from this port."""
        while True:
            try:
                await self.listen(port)
                return
            except OSError:
                await asyncio.sleep(LISTEN_AGAIN_SECONDS)


def main() -> None:
    """Read the options and serve until the process ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--body-bytes", type=int)
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--latency-seconds", type=float, default=0.0)
    parser.add_argument("--latency-sigma", type=float, default=0.0)
    options = parser.parse_args()
    store = make_uniform_store(options.body_bytes, options.objects) if options.body_bytes else Store()
    server = FakeS3(FakeApi(store), Latency(options.latency_seconds, options.latency_sigma))

    async def serve() -> None:
        await server.listen(options.port)
        await asyncio.Event().wait()

    uvloop.run(serve())


if __name__ == "__main__":
    main()
