"""An S3 stand-in for benchmarks: answers what a migration asks, after a set latency, for very little CPU.

It keeps which production keys exist and nothing of what they hold: every legacy object is the same body. It checks no
signature. It is not a server to store anything in, and nothing is proved by it but speed: what is true is proved
against versitygw and moto.

    python -m bench.stand_in --port 0 --latency-ms 70 [--body-bytes 20000] [--throttle 0.2] [--objects 1000]

prints one JSON line with its port; `GET /_stats` answers with requests and CPU seconds so far.
"""

import argparse
import asyncio
import hashlib
import json
import random
from collections import deque
from typing import Any

from bench.stand_in_store import Store

GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class Post:
    """Sends answers when their time has come: one timer for all, since every answer waits equally long."""

    def __init__(self, latency_seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        self._latency = latency_seconds
        self._loop = loop
        self._waiting: deque[tuple[float, asyncio.WriteTransport, bytes]] = deque()

    def send(self, transport: asyncio.WriteTransport, answer: bytes) -> None:
        due = self._loop.time() + self._latency
        self._waiting.append((due, transport, answer))
        if len(self._waiting) == 1:
            self._loop.call_at(due, self._deliver)

    def _deliver(self) -> None:
        now = self._loop.time()
        while self._waiting and self._waiting[0][0] <= now:
            _, transport, answer = self._waiting.popleft()
            transport.write(answer)
        if self._waiting:
            self._loop.call_at(self._waiting[0][0], self._deliver)


class Connection(asyncio.Protocol):
    """One kept connection; one request at a time, as HTTP/1.1 clients send them. Bodies are counted and let go."""

    def __init__(self, store: Store, post: Post) -> None:
        self._store = store
        self._post = post
        self._received = b""
        self._missing = 0
        """Bytes of the body that have not come yet."""
        self._request: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        self._digest: Any = None
        """The MD5 of a part as far as it has come; None where nobody will ask for it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        if self._missing:
            data = self._take_body(data)
        if self._received:
            data = self._received + data
        while data and not self._missing:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                break
            head, data = data[:end], data[end + 4 :]
            self._begin(head)
            data = self._take_body(data)
        self._received = data

    def _begin(self, head: bytes) -> None:
        """Take the head of a request; its body may still be on its way."""
        method, path, _ = head[: head.find(b"\r\n")].split(b" ", 2)
        head = head.lower()
        at = head.find(b"\r\ncontent-length:")
        self._missing = int(head[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        self._request = (method, path, head)
        self._digest = hashlib.md5(usedforsecurity=False) if b"partNumber=" in path else None
        if b"\r\nexpect: 100-continue" in head:
            self._transport.write(GO_ON)

    def _take_body(self, data: bytes) -> bytes:
        """Take what belongs to the body, answer when it is whole, and return what comes after it."""
        body, rest = data[: self._missing], data[self._missing :]
        self._missing -= len(body)
        if self._digest is not None:
            self._digest.update(body)
        if not self._missing:
            digest = self._digest.digest() if self._digest else b""
            self._post.send(self._transport, self._store.answer(*self._request, digest))
        return rest


async def serve(options: argparse.Namespace) -> None:
    body = random.Random(options.seed).randbytes(options.body_bytes)
    store = Store(body, objects=options.objects, throttle=options.throttle, seed=options.seed)
    loop = asyncio.get_running_loop()
    post = Post(options.latency_ms / 1000, loop)
    server = await loop.create_server(lambda: Connection(store, post), "127.0.0.1", options.port, backlog=4096)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    async with server:
        await asyncio.sleep(options.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=70)
    parser.add_argument("--body-bytes", type=int, default=20_000)
    parser.add_argument("--objects", type=int, default=0, help="how many legacy objects a listing tells of")
    parser.add_argument("--throttle", type=float, default=0, help="share of requests answered 503, from 0 to 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="how long it lives at the most")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
