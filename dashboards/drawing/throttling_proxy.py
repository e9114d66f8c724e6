"""A proxy before an S3 server that answers 503 SlowDown when one host sends more requests than it is allowed."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
REFUSAL = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n%s"


@dataclass
class Throttle:
    """How many requests pass in each second; None: all of them."""

    per_second: int | None = None
    _second: int = field(default=-1, init=False)
    _taken: int = field(default=0, init=False)

    def admits(self, now: float) -> bool:
        """Count a request and return whether it passes; `now` in seconds."""
        if int(now) != self._second:
            self._second, self._taken = int(now), 0
        self._taken += 1
        return self.per_second is None or self._taken <= self.per_second


@contextmanager
def throttling_proxy(address: str, port: int) -> Iterator[Throttle]:
    """Listen on `address`, pass requests on to the same port of 127.0.0.1, and yield what bounds them."""
    throttle = Throttle()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError):
                await _relay(reader, writer, port, throttle)
            writer.close()

        await asyncio.start_server(converse, address, port)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(serve(), loop).result(30)
    try:
        yield throttle
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)


async def _relay(client: asyncio.StreamReader, back: asyncio.StreamWriter, port: int, throttle: Throttle) -> None:
    """Pass the requests of one connection on, one after the other, until the client ends it."""
    server, to_server = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            head, body = await _read_message(client)
            if throttle.admits(asyncio.get_running_loop().time()):
                to_server.write(head + body)
                answer = await _read_message(server, is_head=head.startswith(b"HEAD "))
                back.write(b"".join(answer))
            else:
                back.write(REFUSAL % (len(SLOW_DOWN), b"" if head.startswith(b"HEAD ") else SLOW_DOWN))
            await back.drain()
    finally:
        to_server.close()


async def _read_message(reader: asyncio.StreamReader, *, is_head: bool = False) -> tuple[bytes, bytes]:
    """Return head and body of a request or a response; a response to HEAD has no body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    if is_head:
        return head, b""
    if re.search(rb"\r\ntransfer-encoding: *chunked", head, re.IGNORECASE):
        return head, await _read_chunks(reader)
    return head, await reader.readexactly(int(length[1])) if length else b""


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    """Return a chunked body as it came."""
    body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        body += line + await reader.readexactly(size + 2)
        if size == 0:
            return body
