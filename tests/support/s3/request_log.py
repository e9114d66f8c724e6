"""A proxy in front of an S3 server that writes down every request, and can hold some of them back."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from support.s3.proxy import Proxy, Streams

READS = frozenset({"GET", "HEAD"})


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


class RequestLog(Proxy):
    """The running proxy; `seen` is what came."""

    def __init__(self, endpoint_url: str) -> None:
        super().__init__(endpoint_url)
        self._hold: Hold | None = None
        self._refusals: list[Refusal] = []
        self._listener: Callable[[LoggedRequest], object] | None = None
        self.seen: list[LoggedRequest] = []

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
        with self.answering(matches, s3_error(status, code)):
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

    async def relay_one(self, client: Streams, server: Streams) -> bool:
        """Relay a request and its response, as far as the test lets it."""
        head = await client[0].readuntil(b"\r\n\r\n")
        seen = read_request(head)
        self.seen.append(seen)
        if self._listener is not None:
            self._listener(seen)
        await self._wait("request", seen)
        refusal = next((refusal for refusal in self._refusals if refusal.matches(seen)), None)
        if refusal and not refusal.reaches_server:
            await client[0].readexactly(int(seen.headers.get("content-length", 0)))
            return await send(client, refusal.answer) and bool(refusal.answer)
        server[1].write(head)
        if seen.headers.get("expect", "").lower() == "100-continue":
            await send(client, await server[0].readuntil(b"\r\n\r\n"))
        server[1].write(await read_body(seen.headers, client[0]))
        head, body = await read_whole_answer(seen, server[0])
        if refusal:
            return not await send(client, refusal.answer)
        await self._wait("answer", seen)
        await send(client, head + body)
        return "close" not in read_answer(head)[1].get("connection", "").lower()

    async def _wait(self, where: str, seen: LoggedRequest) -> None:
        hold = self._hold
        if hold is not None and hold.where == where and hold.matches(seen):
            hold.held.append(seen)
            await hold.release.wait()


def s3_error(status: int, code: str) -> bytes:
    """Return a whole response with S3's error."""
    body = f"<Error><Code>{code}</Code><Message>as told</Message></Error>".encode()
    return f"HTTP/1.1 {status} As Told\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


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


async def read_body(headers: Mapping[str, str], source: asyncio.StreamReader, *, until_end: bool = False) -> bytes:
    """Return a whole body, by its length, by its chunks (whose frames are kept), or (with neither) to its end."""
    if "content-length" in headers:
        return await source.readexactly(int(headers["content-length"]))
    if "chunked" not in headers.get("transfer-encoding", ""):
        return await source.read() if until_end else b""
    whole, size = b"", None
    while size != 0:
        line = await source.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        whole += line + await source.readexactly(size + 2)
    return whole


async def read_whole_answer(seen: LoggedRequest, source: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the head and the body of the server's answer."""
    head = await source.readuntil(b"\r\n\r\n")
    status, headers = read_answer(head)
    has_body = seen.method != "HEAD" and status not in {204, 304}
    return head, await read_body(headers, source, until_end=True) if has_body else b""


async def send(client: Streams, message: bytes) -> bool:
    client[1].write(message)
    await client[1].drain()
    return True


def writes_of(numbers: range) -> Callable[[LoggedRequest], bool]:
    """Return what matches the writing of the objects of these rows."""
    keys = {f"avatar/u{number}/me.png" for number in numbers}
    return lambda seen: seen.writes_object and seen.key in keys


def from_first(begins: Callable[[LoggedRequest], bool]) -> Callable[[LoggedRequest], bool]:
    """Return what matches every request from the first on that `begins` matches."""
    begun = False

    def has_begun(seen: LoggedRequest) -> bool:
        nonlocal begun
        begun = begun or begins(seen)
        return begun

    return has_begun


@contextmanager
def logged(endpoint_url: str) -> Iterator[RequestLog]:
    """Yield a running proxy in front of a server."""
    with RequestLog(endpoint_url).running() as log:
        yield log
