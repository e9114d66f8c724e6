"""The kept connections to one server: used again and again, opened as they are needed, never more than so many."""

import asyncio
from collections import deque
from collections.abc import Callable

from rowferry.errors import ObjectError, Unreachable
from rowferry.http.connect import Dial
from rowferry.http.connection import Call, Connection
from rowferry.http.descriptors import share_descriptors

MOST_OPENING = 64
"""Connections that are being opened at once: an outage must not use up the process's descriptors."""
REST_SECONDS = 20.0
"""A connection that nobody has used for so long is not trusted any more: what lies between may have forgotten it."""
MANY, GATHER_SECONDS = 128, 0.001
"""With so many calls under way, requests are held back for so long, to be sent together: answers then come together
as well, and both ends wake up once for several. It costs latency where the CPU is the bound, not latency."""


class Pool:
    """Up to `most` connections; calls wait in line for one. To be used on the event-loop thread only."""

    def __init__(self, dial: Dial, most: int, explain: Callable[[Exception], ObjectError]) -> None:
        """`explain` turns what an attempt to connect raised into an error with a name."""
        self._dial = dial
        self._most = most
        self._explain = explain
        self._descriptors = share_descriptors()
        self._idle: dict[Connection, None] = {}
        """The one that was used last is at the end; of ten thousand, any is taken out at once."""
        self._open: set[Connection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting: deque[Call] = deque()
        self._gathering: asyncio.TimerHandle | None = None
        self._failure: ObjectError | None = None
        """Why an attempt to connect has failed, until the others that were made beside it have ended as well."""

    def submit(self, call: Call) -> None:
        """Send on a free connection; wait for one when there is none, and open more."""
        self._waiting.append(call)
        self._serve_soon()

    def free(self, connection: Connection) -> None:
        """Take back a connection that has brought an answer; one that the server is closing is lost soon."""
        self._rest(connection)
        if self._waiting:
            self._serve_soon()

    def lose(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        if connection in self._open:
            self._open.remove(connection)
            self._descriptors.used -= 1
        self._idle.pop(connection, None)
        self._serve()

    def resend(self, call: Call) -> None:
        """Send on a new connection what a kept one has lost; where none may be opened, on the next that is free."""
        if len(self._opening) < min(MOST_OPENING, self._most - len(self._open)) and self._descriptors.grant(1):
            self._open_one(call)
        else:
            self._waiting.appendleft(call)
            self._serve_soon()

    def close(self) -> None:
        """Close every connection; what waits is answered."""
        for task in self._opening:
            task.cancel()
        while self._waiting:
            self._waiting.popleft().give_up()
        for connection in list(self._open):
            connection.drop()

    def _serve_soon(self) -> None:
        """Serve now; where very many calls are under way, those of a moment together."""
        if self._gathering is None:
            if len(self._open) - len(self._idle) < MANY:
                self._serve()
            else:
                loop = asyncio.get_running_loop()
                self._gathering = loop.call_later(GATHER_SECONDS, self._serve)

    def _serve(self) -> None:
        """Bring calls and free connections together; open more connections for the calls that are left."""
        self._gathering = None
        while self._waiting:
            if not self._waiting[0].is_open:
                self._waiting.popleft()
            elif (connection := self._take()) is not None:
                connection.send(self._waiting.popleft())
            else:
                break
        room = min(MOST_OPENING, self._most - len(self._open), len(self._waiting)) - len(self._opening)
        if room > 0 and not self._failure:
            granted = self._descriptors.grant(room)
            least = 0 if self._open or self._opening else 1  # else nothing would ever go on here
            for _ in range(max(least, granted)):
                self._open_one(None)

    def _open_one(self, call: Call | None) -> None:
        """Open a connection, for one call or for whoever comes first."""
        task = asyncio.get_running_loop().create_task(self._connect(call))
        self._opening.add(task)
        self._descriptors.used += 1
        task.add_done_callback(self._note_opened)

    def _rest(self, connection: Connection) -> None:
        self._idle[connection] = None
        connection.free_since = asyncio.get_running_loop().time()

    def _take(self) -> Connection | None:
        """Return the connection that was used last, and is most likely to be there still."""
        fresh_since = asyncio.get_running_loop().time() - REST_SECONDS
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.is_usable and connection.free_since >= fresh_since:
                return connection
            connection.drop()
        return None

    async def _connect(self, call: Call | None) -> None:
        """Open a connection and send `call` on it; what is left without one waits in line again, at its front."""
        connection = Connection(self)
        try:
            await self._dial.open(connection)
            if not connection.is_usable:
                raise Unreachable("ConnectionLost", "the server closed a new connection at once")
        except Exception as error:  # noqa: BLE001 - whatever it was, somebody waits
            self._failure = self._explain(error)
        else:
            self._open.add(connection)
            self._descriptors.used += 1  # that of the attempt is given back when it has ended
            if call is not None and call.is_open:
                connection.send(call)
                call = None
            else:
                self._rest(connection)
        finally:
            if call is not None:
                self._waiting.appendleft(call)

    def _note_opened(self, task: asyncio.Task[None]) -> None:
        """Go on; when nothing could be opened and nothing is open, say so to all that wait."""
        self._opening.discard(task)
        self._descriptors.used -= 1
        failure = self._failure
        if failure is None or self._opening:
            self._serve()
        elif self._open:
            self._serve()  # and open no more: who waits, waits for those that are open
            self._failure = None
        else:
            self._failure = None
            waiting, self._waiting = self._waiting, deque()
            for call in waiting:
                call.fail(failure)
