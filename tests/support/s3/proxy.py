"""A proxy in front of an S3 server, one request after the other on each connection; subclasses say what it relays."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Self
from urllib.parse import urlsplit

LINE_LIMIT_BYTES = 1024 * 1024
START_SECONDS = 100

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy(ABC):
    """`endpoint_url` stands for that of the server behind it."""

    def __init__(self, endpoint_url: str, *, host: str = "127.0.0.1") -> None:
        self._host = host
        self._upstream = urlsplit(endpoint_url)
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[None]] = set()
        self.endpoint_url = ""

    @abstractmethod
    async def relay_one(self, client: Streams, server: Streams) -> bool:
        """Relay one request and its response. Return whether the connection may be used again."""

    @contextmanager
    def running(self) -> Iterator[Self]:
        thread = Thread(target=self._loop.run_forever, name=type(self).__name__)
        thread.start()
        try:
            self._call(self._listen())
            yield self
        finally:
            self._call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_SECONDS)

    async def _listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._accept, self._host, port, limit=LINE_LIMIT_BYTES)
        self.endpoint_url = f"http://{self._host}:{self._server.sockets[0].getsockname()[1]}"

    async def _close(self) -> None:
        for listener in self._server.sockets:
            self._loop.remove_reader(listener)
        for _ in range(5):  # what was accepted just now needs the server until its task has begun, which can be ended
            await asyncio.sleep(0)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        server: Streams | None = None
        try:
            server = await asyncio.open_connection(self._upstream.hostname, self._upstream.port, limit=LINE_LIMIT_BYTES)
            while await self.relay_one((reader, writer), server):
                pass
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            ends = (writer, *(server[1:] if server else ()))
            for end in ends:  # all of them first: the wait may be cancelled
                end.close()
            for end in ends:
                with suppress(OSError, asyncio.CancelledError):
                    await end.wait_closed()
