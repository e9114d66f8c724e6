"""A proxy in front of an S3 server that writes down every request, and can hold some of them back."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Literal
from urllib.parse import unquote, urlsplit

READS = frozenset({"GET", "HEAD"})
LINE_LIMIT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request: what it asked for."""

    method: str
    path: str
    """Decoded, without the query."""
    query: str
    headers: dict[str, str]

    @property
    def bucket(self) -> str:
        return self.path.split("/")[1]

    @property
    def key(self) -> str:
        return self.path[len(self.bucket) + 2 :]

    @property
    def writes(self) -> bool:
        return self.method not in READS

    @property
    def writes_object(self) -> bool:
        """Return whether it writes a whole object: CopyObject or PutObject."""
        return self.method == "PUT" and not self.query


@dataclass(slots=True)
class Hold:
    """Requests to keep waiting: before the server sees them, or once it has answered."""

    matches: Callable[[LoggedRequest], bool]
    where: Literal["request", "answer"]
    held: list[LoggedRequest] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Requests to answer in the server's stead."""

    matches: Callable[[LoggedRequest], bool]
    answer: bytes
    reaches_server: bool = False
    """Whether the server does what it is asked, before its own answer is lost."""


class RequestLog:
    """The running proxy; `endpoint_url` stands for that of the server behind it."""

    def __init__(self, endpoint_url: str) -> None:
        self._upstream = urlsplit(endpoint_url)
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[None]] = set()
        self._hold: Hold | None = None
        self._refusals: list[Refusal] = []
        self._listener: Callable[[LoggedRequest], object] | None = None
        self.endpoint_url = ""
        self.seen: list[LoggedRequest] = []

    @contextmanager
    def running(self) -> Iterator["RequestLog"]:
        thread = Thread(target=self._loop.run_forever, name="request log")
        thread.start()
        try:
            self._call(self._listen())
            yield self
        finally:
            self._call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    @contextmanager
    def holding(
        self, matches: Callable[[LoggedRequest], bool], *, where: Literal["request", "answer"] = "request"
    ) -> Iterator[list[LoggedRequest]]:
        """Keep what matches waiting until the block ends; yield the list of what waits."""
        hold = self._hold = Hold(matches, where)
        try:
            yield hold.held
        finally:
            self._hold = None
            self._loop.call_soon_threadsafe(hold.release.set)

    @contextmanager
    def telling(self, listener: Callable[[LoggedRequest], object]) -> Iterator[None]:
        """Call the listener with each request before the server sees it, until the block ends."""
        self._listener = listener
        try:
            yield
        finally:
            self._listener = None

    @contextmanager
    def breaking(self, matches: Callable[[LoggedRequest], bool]) -> Iterator[None]:
        """Break the connection of what matches, without an answer, until the block ends."""
        with self.answering(matches, b""):
            yield

    @contextmanager
    def refusing(self, matches: Callable[[LoggedRequest], bool], status: int, code: str) -> Iterator[None]:
        """Respond to what matches with an S3 error, unseen by the server, until the block ends."""
        body = f"<Error><Code>{code}</Code><Message>as told</Message></Error>".encode()
        head = f"HTTP/1.1 {status} As Told\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with self.answering(matches, head + body):
            yield

    @contextmanager
    def answering(
        self, matches: Callable[[LoggedRequest], bool], answer: bytes, *, reaches_server: bool = False
    ) -> Iterator[None]:
        """Respond to what matches with these bytes, unseen by the server or in its stead, until the block ends."""
        refusal = Refusal(matches, answer, reaches_server)
        self._refusals.append(refusal)
        try:
            yield
        finally:
            self._refusals.remove(refusal)

    def written(self, bucket: str) -> list[LoggedRequest]:
        """Return the requests so far that wrote to, or deleted from, a bucket."""
        return [seen for seen in self.seen if seen.writes and seen.bucket == bucket]

    def _call(self, coroutine) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(100)

    @contextmanager
    def out_of_reach(self) -> Iterator[None]:
        """Break all connections, and refuse new ones on the same port until the block ends."""
        port = self._server.sockets[0].getsockname()[1]
        self._call(self._close())
        try:
            yield
        finally:
            self._call(self._listen(port))

    async def _listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, limit=LINE_LIMIT_BYTES)
        self.endpoint_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _close(self) -> None:
        self._server.close()
        await asyncio.sleep(0)  # what was accepted just now has to be known before it can be ended
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        to_server = None
        try:
            server, to_server = await asyncio.open_connection(
                self._upstream.hostname, self._upstream.port, limit=LINE_LIMIT_BYTES
            )
            while await self._relay_one(client, to_client, server, to_server):
                pass
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            writers = [writer for writer in (to_client, to_server) if writer is not None]
            for writer in writers:
                writer.close()
            for writer in writers:
                with suppress(OSError, asyncio.CancelledError):
                    await writer.wait_closed()

    async def _relay_one(self, client, to_client, server, to_server) -> bool:
        """Relay one request and its answer. Return whether the connection may be used again."""
        head = await client.readuntil(b"\r\n\r\n")
        seen = read_request(head)
        self.seen.append(seen)
        if self._listener is not None:
            self._listener(seen)
        await self._wait("request", seen)
        refusal = next((refusal for refusal in self._refusals if refusal.matches(seen)), None)
        if refusal and not refusal.reaches_server:
            await client.readexactly(int(seen.headers.get("content-length", 0)))
            to_client.write(refusal.answer)
            await to_client.drain()
            return bool(refusal.answer)
        to_server.write(head)
        if seen.headers.get("expect", "").lower() == "100-continue":
            to_client.write(await server.readuntil(b"\r\n\r\n"))
        await relay_body(seen.headers, client, to_server)
        head = await server.readuntil(b"\r\n\r\n")
        if refusal:
            to_client.write(refusal.answer)
            await to_client.drain()
            return False
        await self._wait("answer", seen)
        status, headers = read_answer(head)
        to_client.write(head)
        if seen.method != "HEAD" and status not in {204, 304}:
            await relay_body(headers, server, to_client, until_end=True)
        await to_client.drain()
        return "close" not in headers.get("connection", "").lower()

    async def _wait(self, where: str, seen: LoggedRequest) -> None:
        hold = self._hold
        if hold is not None and hold.where == where and hold.matches(seen):
            hold.held.append(seen)
            await hold.release.wait()


def read_request(head: bytes) -> LoggedRequest:
    line, headers = split_head(head)
    method, target, _ = line.split(" ")
    path, _, query = target.partition("?")
    return LoggedRequest(method, unquote(path), query, headers)


def read_answer(head: bytes) -> tuple[int, dict[str, str]]:
    line, headers = split_head(head)
    return int(line.split(" ")[1]), headers


def split_head(head: bytes) -> tuple[str, dict[str, str]]:
    line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (text.split(":", 1) for text in fields)
    return line, {name.strip().lower(): value.strip() for name, value in pairs}


async def relay_body(
    headers: dict[str, str], source: asyncio.StreamReader, target: asyncio.StreamWriter, *, until_end: bool = False
) -> None:
    """Pass a body on by its length, by its chunks, or (an answer with neither) to its end."""
    if "content-length" in headers:
        left = int(headers["content-length"])
        while left:
            piece = await source.read(min(left, 65536))
            if not piece:
                raise EOFError
            left -= len(piece)
            target.write(piece)
            await target.drain()
    elif "chunked" in headers.get("transfer-encoding", ""):
        size = None
        while size != 0:
            line = await source.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            target.write(line + await source.readexactly(size + 2))
    elif until_end:
        target.write(await source.read())
    await target.drain()


def writes_of(numbers: range) -> Callable[[LoggedRequest], bool]:
    """Return what matches the writing of the objects of these rows."""
    keys = {f"avatar/u{number}/me.png" for number in numbers}
    return lambda seen: seen.writes_object and seen.key in keys


@contextmanager
def logged(endpoint_url: str) -> Iterator[RequestLog]:
    """Yield a running proxy in front of a server."""
    with RequestLog(endpoint_url).running() as log:
        yield log
