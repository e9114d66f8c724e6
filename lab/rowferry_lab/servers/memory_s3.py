"""An S3 server in memory: answers after a set latency, for little CPU, and really stores what it is given.

    python -m rowferry_lab.servers.memory_s3 --port 9000

It checks neither signatures nor checksums, and forgets everything when it ends: it is for simulations. Beside S3,
`PUT /_latency?seconds=0.07` sets the latency of every answer from then on, and `GET /_stats` tells, as JSON, how many
requests it has answered and how many CPU seconds it has used.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from http import HTTPStatus

from rowferry_lab.servers.memory_api import Call, Reply, answer
from rowferry_lab.servers.memory_store import Store

MAX_HEAD_BYTES = 64 * 1024
MAX_LATENCY_SECONDS = 10.0
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Server:
    """The store, the latency and the counters."""

    def __init__(self) -> None:
        """Begin empty, without latency."""
        self.latency_seconds = 0.0
        self._store = Store()
        self._requests = 0

    def answer(self, head: str, body: bytes) -> bytes:
        """Return the whole answer to a request."""
        call = Call.read(head, body)
        if call.bucket == "_latency":
            seconds = float(call.query["seconds"])
            self.latency_seconds = min(max(seconds, 0.0), MAX_LATENCY_SECONDS)
            return compose(Reply(204), with_body=False)
        if call.bucket == "_stats":
            stats = {"requests": self._requests, "cpu_seconds": time.process_time()}
            return compose(Reply(200, {"content-type": "application/json"}, json.dumps(stats).encode()))
        self._requests += 1
        return compose(answer(self._store, call), with_body=call.method != "HEAD")


def compose(reply: Reply, *, with_body: bool = True) -> bytes:
    """Return the bytes of an answer; without its body it still tells the body's length."""
    lines = [f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, '')}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if reply.status != HTTPStatus.NO_CONTENT:
        lines.append(f"content-length: {len(reply.body)}")
    head = "\r\n".join([*lines, "", ""]).encode()
    return head + reply.body if with_body else head


class Connection(asyncio.Protocol):
    """One kept connection; one request at a time, as HTTP/1.1 clients send them."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        """Share the server's objects."""
        self._server = server
        self._loop = loop
        self._received = bytearray()
        self._told_to_go_on = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._write: Callable[[bytes], None] = transport.write  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete, after the latency."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].decode("latin-1")
            length = read_length(head)
            if length is None:
                self._transport.close()
                return
            if len(self._received) < end + 4 + length:
                self._invite(head)
                return
            body = bytes(self._received[end + 4 : end + 4 + length])
            del self._received[: end + 4 + length]
            self._told_to_go_on = False
            self._loop.call_later(self._server.latency_seconds, self._write, self._server.answer(head, body))
        if len(self._received) > MAX_HEAD_BYTES:
            self._transport.close()

    def _invite(self, head: str) -> None:
        """Tell a client that waits for it to send the body."""
        if not self._told_to_go_on and "\r\nexpect: 100-continue" in head.lower():
            self._told_to_go_on = True
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")


def read_length(head: str) -> int | None:
    """Return how many bytes follow the head of a request; None when it does not say so in a way we understand."""
    lowered = head.lower()
    if "\r\ntransfer-encoding:" in lowered:
        return None
    _, found, rest = lowered.partition("\r\ncontent-length:")
    value = rest.split("\r\n", 1)[0].strip()
    return int(value) if value.isdecimal() else None if found else 0


async def serve(port: int) -> None:
    """Serve on this port of 127.0.0.1 until the process is told to end."""
    server, loop = Server(), asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server, loop), "127.0.0.1", port, backlog=4096)
    async with listening:
        await listening.serve_forever()


def main() -> None:
    """Read the port and serve."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
