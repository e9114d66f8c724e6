"""The kept connections to one server: opened as they are needed, used again, never more than so many."""

import asyncio
import time
from collections import deque

from rowferry.errors import ObjectError, Unreachable
from rowferry.http.connect import Connector, explain_failure
from rowferry.http.connection import Connection
from rowferry.http.descriptors import share_descriptors
from rowferry.http.outbox import Outbox

MAX_OPENING = 64
"""Connections that are being opened at once: an outage must not use up the process's descriptors."""
IDLE_SECONDS = 20.0
"""A connection that was idle for longer is not trusted any more: a firewall between may have forgotten it."""


class Waiter(asyncio.Future[Connection]):
    """A request that waits for a connection."""

    for_body = False


class Pool:
    """Up to `max_connections` connections; requests wait in line for one. Event-loop thread only."""

    def __init__(self, connector: Connector, max_connections: int) -> None:
        """Open nothing yet."""
        self._connector = connector
        self._max_connections = max_connections
        self._descriptors = share_descriptors()
        self._outbox = Outbox()
        self._idle: dict[Connection, None] = {}
        """The one that was used last is at the end; any of them is taken out at once."""
        self._idle_grown: dict[Connection, None] = {}
        """Those of `_grown` that are idle."""
        self._grown: set[Connection] = set()
        """TLS connections that a body has passed through piece by piece: their buffers keep the size that they had then
        (0.6 MB) until they are closed. The next body takes one of these and a HEAD another, lest all of them grow."""
        self._most_streaming = 0
        """How many bodies passed at once: so many grown connections are kept."""
        self._open: set[Connection] = set()
        self._opening: dict[asyncio.Task[None], Waiter | None] = {}
        """The request that each connection is opened for, if it is for one alone."""
        self.waiting: deque[Waiter] = deque()
        """Requests in line for a connection."""
        self._failure: ObjectError | None = None
        """Why an attempt to connect has failed, until the others that were made beside it have ended as well."""
        self._closed: ObjectError | None = None
        self._streaming: set[Connection] = set()
        """Those whose body is still being read, or sent from elsewhere. They come on top of the others: a copy that has
        one may need another request, and must not wait for its own end."""

    async def acquire(self, *, new: bool = False, for_body: bool = False) -> Connection:
        """Return a connection for one request; `release` it. Raises why none can be opened where none is open.

        1. A kept one is idle: the one that was used last, as it is most likely to be there still.
        2. There is room for one more: open it; the request takes this one or one that is released earlier.
        3. All are busy: wait in line.
        `new`: a kept one has just turned out to be stale, so a new one is opened, or the request goes to the front.
        `for_body`: a body may pass, of the request or of its response.
        """
        if self._closed is not None:
            raise self._closed.copy()
        if not new and not self.waiting and (connection := self._take_idle(for_body=for_body)) is not None:
            return connection
        waiter = Waiter(loop=asyncio.get_running_loop())
        waiter.for_body = for_body
        if not new:
            self.waiting.append(waiter)
            self._serve()
        elif self._room_to_open() > 0 and self._descriptors.grant(1):
            self._open_one(waiter)
        else:
            self.waiting.appendleft(waiter)
            self._serve()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(waiter.result())
            raise

    def take_idle(self) -> Connection | None:
        """Return an idle connection for requests without a body, None where there is none; `release` it."""
        if self.waiting or self._closed is not None:
            return None
        return self._take_idle()

    def release(self, connection: Connection) -> None:
        """Take a connection back; one that is of no further use is closed."""
        if len(self._grown) > self._most_streaming and connection in self._grown:
            self._grown.remove(connection)
            connection.close()
            return
        if not connection.is_usable:
            connection.close()
            return
        self._keep(connection)
        if self.waiting:
            self._serve()

    def lend(self, connection: Connection) -> None:
        """Leave a connection to the reader of a response, or to a body from elsewhere, until `take_back`."""
        self._streaming.add(connection)
        if self._connector.has_tls and connection in self._open:  # it may have been lost on the way here
            self._grown.add(connection)
            self._most_streaming = max(self._most_streaming, len(self._streaming))

    def take_back(self, connection: Connection) -> None:
        """Take back what was lent."""
        self._streaming.discard(connection)
        self.release(connection)

    def fail_all(self, error: ObjectError) -> None:
        """End every request that waits or is in flight with `error`."""
        self._refuse_waiting(error)
        for waiter in self._opening.values():
            if waiter is not None:
                _refuse(waiter, error)
        for connection in self._open - self._idle.keys() - self._idle_grown.keys():
            connection.fail(error.copy())

    def close(self, error: ObjectError) -> None:
        """Close every connection; what waits or is in flight ends with `error`."""
        self._closed = error
        self.fail_all(error)
        for task in self._opening:
            task.cancel()
        for connection in [*self._idle, *self._idle_grown]:
            connection.close()

    def _serve(self) -> None:
        """Hand idle connections to the requests that wait, and open more for those that are left."""
        while self.waiting:
            if self.waiting[0].done():
                self.waiting.popleft()
            elif (connection := self._take_idle(for_body=self.waiting[0].for_body)) is not None:
                self.waiting.popleft().set_result(connection)
            else:
                break
        room = min(self._room_to_open(), len(self.waiting) - len(self._opening))
        if room > 0 and self._failure is None and self._closed is None:
            granted = self._descriptors.grant(room)
            is_held = len(self._open) <= len(self._streaming) and not self._opening
            least = 1 if is_held else 0  # else nothing would ever go on here
            for _ in range(max(least, granted)):
                self._open_one(None)

    def _room_to_open(self) -> int:
        room = self._max_connections + len(self._streaming) - len(self._open)
        return min(MAX_OPENING, room) - len(self._opening)

    def _take_idle(self, *, for_body: bool = False) -> Connection | None:
        """Return the connection of the preferred kind that was used last, unless it is too old or closed."""
        kept_since = time.monotonic() - IDLE_SECONDS
        for kept in (self._idle_grown, self._idle) if for_body else (self._idle, self._idle_grown):
            while kept:
                connection, _ = kept.popitem()
                if connection.is_usable and connection.idle_since >= kept_since:
                    return connection
                connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        (self._idle_grown if connection in self._grown else self._idle)[connection] = None
        connection.idle_since = time.monotonic()

    def _forget(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._streaming.discard(connection)
        self._grown.discard(connection)
        if connection in self._open:
            self._open.remove(connection)
            self._descriptors.used -= 1
        self._idle.pop(connection, None)
        self._idle_grown.pop(connection, None)
        self._serve()

    def _open_one(self, waiter: Waiter | None) -> None:
        """Open a connection, for one request or for the first that waits."""
        task = asyncio.get_running_loop().create_task(self._connect(waiter))
        self._opening[task] = waiter
        self._descriptors.used += 1
        task.add_done_callback(self._note_opened)

    async def _connect(self, waiter: Waiter | None) -> None:
        """Open a connection and hand it to `waiter`, which goes to the front of the line where that fails."""
        connection = Connection(self._outbox, self._forget)
        try:
            await self._connector.connect(connection)
            if not connection.is_usable:
                raise Unreachable("ConnectionLost", "the server closed a new connection at once")
        except Exception as error:  # noqa: BLE001 - the requests that wait are told
            self._failure = explain_failure(error)
        else:
            self._open.add(connection)
            self._descriptors.used += 1  # that of the attempt is given back when it has ended
            if self._closed is not None:
                connection.close()
            elif waiter is not None and not waiter.done():
                waiter.set_result(connection)
            else:
                self._keep(connection)
        finally:
            if waiter is not None and not waiter.done():
                self.waiting.appendleft(waiter)

    def _note_opened(self, task: asyncio.Task[None]) -> None:
        """Go on after an attempt to connect.

        1. None has failed, or others are still under way: serve.
        2. One has failed and some connections are open: the requests wait for those, no more are opened for now.
        3. One has failed and none is open: all requests that wait end with its error.
        """
        del self._opening[task]
        self._descriptors.used -= 1
        failure = self._failure
        if failure is None or self._opening:
            self._serve()
        elif self._open:
            self._serve()
            self._failure = None
        else:
            self._failure = None
            self._refuse_waiting(failure)

    def _refuse_waiting(self, error: ObjectError) -> None:
        waiting, self.waiting = self.waiting, deque()
        for waiter in waiting:
            _refuse(waiter, error)


def _refuse(waiter: Waiter, error: ObjectError) -> None:
    if not waiter.done():
        waiter.set_exception(error.copy())
