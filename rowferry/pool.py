"""The kept connections to one server: used again and again, opened as they are needed, never more than so many."""

import asyncio
from collections import deque
from collections.abc import Callable

from rowferry.dial import Dial
from rowferry.errors import ObjectError, Unreachable
from rowferry.wire import Call, Connection


class Pool:
    """Up to `most` connections; calls beyond that wait in line. To be used on the event-loop thread only."""

    def __init__(self, dial: Dial, most: int, explain: Callable[[Exception], ObjectError]) -> None:
        """`explain` turns what an attempt to connect raised into an error with a name."""
        self._dial = dial
        self._most = most
        self._explain = explain
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting: deque[Call] = deque()

    def submit(self, call: Call) -> None:
        """Send on a free connection, or a new one; wait when there are too many."""
        if not call.is_open:
            return
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                connection.send(call)
                return
        if len(self._open) + len(self._opening) < self._most:
            task = asyncio.get_running_loop().create_task(self._connect(call))
            self._opening.add(task)
            task.add_done_callback(self._note_opened)
        else:
            self._waiting.append(call)

    def free(self, connection: Connection) -> None:
        """Take back a connection that has brought an answer; one that the server is closing is lost soon."""
        while self._waiting and connection.is_usable:
            call = self._waiting.popleft()
            if call.is_open:
                connection.send(call)
                return
        self._idle.append(connection)

    def lose(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._go_on()

    def close(self) -> None:
        """Close every connection; what waits is answered."""
        for task in self._opening:
            task.cancel()
        while self._waiting:
            self._waiting.popleft().give_up()
        for connection in list(self._open):
            connection.drop()

    async def _connect(self, call: Call) -> None:
        """Open a connection for a call; who is given up meanwhile leaves it to others."""
        connection = Connection(self)
        try:
            await self._dial.open(connection)
        except Exception as error:  # noqa: BLE001 - the call must be answered, whatever it was
            call.fail(self._explain(error))
            return
        self._open.add(connection)
        if not call.is_open:
            self.free(connection)
        elif connection.is_usable:
            connection.send(call)
        else:
            call.fail(Unreachable("ConnectionLost", "the server closed a new connection"))

    def _note_opened(self, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        self._go_on()

    def _go_on(self) -> None:
        """Let a call out of the line where there is room for a connection more."""
        if self._waiting and len(self._open) + len(self._opening) < self._most:
            self.submit(self._waiting.popleft())
