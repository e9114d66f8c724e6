"""A fake S3 server: objects in memory, a set latency, little CPU. For the sweep, the benches and the tests.

    python -m rowferry_lab.servers.fake_s3 --port 9000 [--latency-ms 70] [--throttle 0.2]

It checks neither signatures nor checksums, and forgets everything when it ends. Beside S3, `PUT /_latency?seconds=0.07`
sets the latency of all further responses, and `GET /_stats` returns, as JSON, how many requests were answered, how many
objects are stored and how many CPU seconds were used.

For benches, `--body-bytes` fills the bucket `legacy` with one object under every key that ends in .png; a listing shows
`--objects` of them. The bodies of parts are then hashed and not kept.
"""

import argparse
import asyncio
import hashlib
import json
import random
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from rowferry_lab.servers.fake_s3_api import Deviations, FakeApi
from rowferry_lab.servers.fake_s3_http import Request, refuse, respond
from rowferry_lab.servers.fake_s3_store import Store, make_object

MAX_HEAD_BYTES = 64 * 1024
MAX_LATENCY_SECONDS = 10.0
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+) *(?:\r\n|$)")


class FakeS3:
    """The server: what it stores, how it responds, and what it has been asked."""

    def __init__(
        self,
        store: Store | None = None,
        deviations: Deviations | None = None,
        *,
        latency_seconds: float = 0,
        throttle: float = 0,
        seed: int = 1,
        keeps_parts: bool = True,
    ) -> None:
        """Refuse the share `throttle` of all requests with 503; without `keeps_parts`, keep only digests of parts."""
        self.latency_seconds = latency_seconds
        self.keeps_parts = keeps_parts
        self.before: Callable[[Request], object] | None = None
        """Called with each request before it is answered."""
        self.store = store or Store()
        self._api = FakeApi(self.store, deviations or Deviations())
        self._throttle = throttle
        self._dice = random.Random(seed)  # noqa: S311 - to be repeatable, not to be secret
        self._requests = 0

    def answer(self, request: Request) -> bytes:
        """Return the response to a request of S3 or to one about the server itself."""
        if request.bucket == "_latency":
            self.latency_seconds = min(max(float(request.query["seconds"]), 0.0), MAX_LATENCY_SECONDS)
            return respond(204)
        if request.bucket == "_stats":
            return respond(200, json.dumps(self._read_stats()).encode(), b"content-type: application/json\r\n")
        self._requests += 1
        if self.before is not None:
            self.before(request)
        if self._throttle and self._dice.random() < self._throttle:
            return refuse(request, 503, "SlowDown")
        return self._api.answer(request)

    def _read_stats(self) -> dict[str, float]:
        return {
            "requests": self._requests,
            "objects": self.store.count_objects(),
            "cpu_seconds": time.process_time(),
        }

    async def listen(self, port: int) -> asyncio.Server:
        """Listen on a port of 127.0.0.1; 0 stands for a free one."""
        loop = asyncio.get_running_loop()
        delayed = DelayedWrites(loop)
        return await loop.create_server(lambda: Connection(self, delayed), "127.0.0.1", port, backlog=4096)


class DelayedWrites:
    """Sends responses when they are due, with one timer for all: a timer for each costs more than its request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin with nothing to send."""
        self._loop = loop
        self._waiting: deque[tuple[float, Any, bytes]] = deque()

    def send(self, transport: Any, response: bytes, delay_seconds: float) -> None:
        """Write the response after the delay, in the order of the calls."""
        if not delay_seconds and not self._waiting:
            transport.write(response)
            return
        due = self._loop.time() + delay_seconds
        self._waiting.append((due, transport, response))
        if len(self._waiting) == 1:
            self._loop.call_at(due, self._deliver)

    def _deliver(self) -> None:
        now = self._loop.time()
        while self._waiting and self._waiting[0][0] <= now:
            _, transport, response = self._waiting.popleft()
            transport.write(response)
        if self._waiting:
            self._loop.call_at(self._waiting[0][0], self._deliver)


class Connection(asyncio.Protocol):
    """One connection. The body of a request may come in many pieces, which are joined once."""

    def __init__(self, server: FakeS3, delayed: DelayedWrites) -> None:
        """Share the server's objects."""
        self._server = server
        self._delayed = delayed
        self._transport: Any = None
        self._pieces: list[bytes] = []
        self._missing = 0
        """Bytes of the body that have not come yet."""
        self._head = b""
        self._hash: Any = None
        """The MD5 of a part that is not kept."""
        self._hashed_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Respond to every request that is complete."""
        while data:
            data = self._read_body(data) if self._missing else self._read_head(data)

    def _read_head(self, data: bytes) -> bytes:
        """Begin a request and return what comes after its head; nothing where the head is not complete."""
        buffer = b"".join([*self._pieces, data]) if self._pieces else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            self._pieces = [buffer]
            if len(buffer) > MAX_HEAD_BYTES:
                self._transport.close()
            return b""
        self._pieces = []
        head, rest = buffer[:end], buffer[end + 4 :]
        length = read_length(head)
        if length is None:
            self._transport.close()
            return b""
        if not length:
            self._answer(Request(head, b""))
            return rest
        self._head, self._missing = head, length
        if not self._server.keeps_parts and b"partNumber=" in head[: head.find(b"\r\n")]:
            self._hash, self._hashed_bytes = hashlib.md5(usedforsecurity=False), length
        if not rest and b"\r\nexpect: 100-continue" in head.lower():
            self._transport.write(CONTINUE)
        return rest

    def _read_body(self, data: bytes) -> bytes:
        """Take what belongs to the body, answer when it is complete, and return what comes after it."""
        piece = data[: self._missing]
        self._missing -= len(piece)
        if self._hash is None:
            self._pieces.append(piece)
        else:
            self._hash.update(piece)
        if not self._missing:
            digest = (self._hash.hexdigest(), self._hashed_bytes) if self._hash else None
            request = Request(self._head, b"".join(self._pieces), digest)
            self._pieces, self._head, self._hash = [], b"", None
            self._answer(request)
        return data[len(piece) :]

    def _answer(self, request: Request) -> None:
        self._delayed.send(self._transport, self._server.answer(request), self._server.latency_seconds)


def read_length(head: bytes) -> int | None:
    """Return how many bytes follow the head of a request; None when it does not state that as a number."""
    lowered = head.lower()
    if b"\r\ntransfer-encoding:" in lowered:
        return None
    found = LENGTH.search(lowered)
    if found:
        return int(found[1])
    return None if b"\r\ncontent-length:" in lowered else 0


async def serve(server: FakeS3, port: int) -> None:
    """Print the port and serve until the process ends."""
    listening = await server.listen(port)
    print(json.dumps({"port": listening.sockets[0].getsockname()[1]}), flush=True)  # noqa: T201
    async with listening:
        await listening.serve_forever()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--body-bytes", type=int)
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--throttle", type=float, default=0, help="share of requests answered 503, from 0 to 1")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    uniform = None
    if options.body_bytes is not None:
        body = random.Random(options.seed).randbytes(options.body_bytes)  # noqa: S311
        uniform = make_object(body, {"content-type": "image/png"})
    server = FakeS3(
        Store(uniform, options.objects),
        latency_seconds=options.latency_ms / 1000,
        throttle=options.throttle,
        seed=options.seed,
        keeps_parts=uniform is None,
    )
    asyncio.run(serve(server, options.port))


if __name__ == "__main__":
    main()
