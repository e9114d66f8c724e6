"""An S3 stand-in for benchmarks: answers what a migration asks, after a set latency, for very little CPU.

It keeps which production keys exist (so that `If-None-Match: *` is honoured) and nothing of what they hold: every
legacy object is the same body. It checks no signature. It is not a server to store anything in, and nothing is proved
by it but speed: what is true is proved against versitygw and moto.

    python bench/stand_in.py --port 0 --latency-ms 70 [--body-bytes 20000] [--throttle 0.2]

prints one JSON line with its port; `GET /_stats` answers with requests and CPU seconds so far.
"""

import argparse
import asyncio
import hashlib
import json
import random
import time

CREATED = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n%s"
COPY_RESULT = (
    b'<?xml version="1.0" encoding="UTF-8"?><CopyObjectResult><ETag>"%s"</ETag>'
    b"<LastModified>2026-01-01T00:00:00.000Z</LastModified></CopyObjectResult>"
)
ERROR = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>stand-in</Message></Error>'
STATUSES = {404: b"Not Found", 412: b"Precondition Failed", 503: b"Slow Down"}


class Store:
    """What the stand-in knows: its settings, the production keys, and its counters."""

    def __init__(self, latency_ms: float, body_bytes: int, throttle: float, seed: int) -> None:
        self.latency = latency_ms / 1000
        self.body = random.Random(seed).randbytes(body_bytes)
        self.etag = hashlib.md5(self.body, usedforsecurity=False).hexdigest().encode()
        self.throttle = throttle
        self.dice = random.Random(seed)
        self.keys: set[bytes] = set()
        self.requests = 0
        self.copied_answer = CREATED % (len(COPY_RESULT % self.etag), COPY_RESULT % self.etag)
        self.put_answer = b'HTTP/1.1 200 OK\r\nETag: "%s"\r\nContent-Length: 0\r\n\r\n' % self.etag
        described = b'ETag: "%s"\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n' % (self.etag, body_bytes)
        self.head_answer = b"HTTP/1.1 200 OK\r\n" + described
        self.get_answer = self.head_answer + self.body

    def answer(self, method: bytes, path: bytes, head: bytes) -> bytes:
        """Return the whole answer to a request whose head, in lower case, is given."""
        self.requests += 1
        if path == b"/_stats":
            stats = json.dumps({"requests": self.requests, "cpu_seconds": time.process_time()}).encode()
            return CREATED % (len(stats), stats)
        if self.throttle and self.dice.random() < self.throttle:
            return refuse(503, b"SlowDown", with_body=method != b"HEAD")
        if method == b"PUT":
            return self._write(path, head)
        return self._read(method, path)

    def _write(self, path: bytes, head: bytes) -> bytes:
        if path in self.keys and b"\r\nif-none-match:" in head:
            return refuse(412, b"PreconditionFailed", with_body=True)
        self.keys.add(path)
        return self.copied_answer if b"\r\nx-amz-copy-source:" in head else self.put_answer

    def _read(self, method: bytes, path: bytes) -> bytes:
        bucket, _, key = path[1:].partition(b"/")
        if bucket == b"production" and key and path not in self.keys:
            return refuse(404, b"NoSuchKey", with_body=method != b"HEAD")
        return self.head_answer if method == b"HEAD" else self.get_answer


def refuse(status: int, code: bytes, *, with_body: bool) -> bytes:
    body = ERROR % code if with_body else b""
    return b"HTTP/1.1 %d %s\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n%s" % (
        status,
        STATUSES[status],
        len(body),
        body,
    )


class Connection(asyncio.Protocol):
    """One kept connection; one request at a time, as HTTP/1.1 clients send them."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end]).lower()
            at = head.find(b"\r\ncontent-length:")
            length = int(head[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._received) < end + 4 + length:
                return
            method, path, _ = bytes(self._received[: self._received.find(b"\r\n")]).split(b" ", 2)
            del self._received[: end + 4 + length]
            answer = self._store.answer(method, path, head)
            self._loop.call_later(self._store.latency, self._transport.write, answer)


async def serve(options: argparse.Namespace) -> None:
    store = Store(options.latency_ms, options.body_bytes, options.throttle, options.seed)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(store, loop), "127.0.0.1", options.port, backlog=4096)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    async with server:
        await asyncio.sleep(options.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=70)
    parser.add_argument("--body-bytes", type=int, default=20_000)
    parser.add_argument("--throttle", type=float, default=0, help="share of requests answered 503, from 0 to 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="how long it lives at the most")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
