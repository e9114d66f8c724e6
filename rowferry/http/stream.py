"""The body of one response, read piece by piece. Event-loop thread only."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rowferry.errors import ObjectError, TimedOut
from rowferry.http.connection import Connection
from rowferry.http.deadlines import Deadlines, InFlight
from rowferry.http.pipe import Pipe


class BodyStream:
    """What follows the headers of a response. The server waits while it is not read; `close` it in the end."""

    def __init__(
        self,
        connection: Connection,
        length: int,
        *,
        deadlines: Deadlines,
        started: float,
        name: Callable[[ObjectError], ObjectError],
        on_end: Callable[[], None],
    ) -> None:
        """`length`: in bytes; `started`: when the request was sent, by `time.monotonic()`.

        `name` says in an error which request it is of; `on_end` is called once, when the connection is free.
        """
        self.length = length
        self._connection = connection
        self._deadlines = deadlines
        self._started = started
        self._name = name
        self._on_end = on_end
        self._is_closed = False

    async def read(self) -> list[bytes]:
        """Return the next pieces as soon as there are any; nothing at the end, or when `wake` is called.

        A closed stream has none. Raises Unreachable when the connection ends before the body, TimedOut when nothing
        comes for a deadline, and what the client was cut off or closed with.
        """
        if self._is_closed:  # the connection may serve another request by now
            return []
        if pieces := self._connection.take_pieces():
            return pieces
        with self._awaiting() as in_flight:
            await self._connection.wait_for_pieces(in_flight)
        return self._connection.take_pieces()

    async def pass_on(self, pipe: Pipe) -> bytes:
        """Give the body to `pipe` as it comes, and return its last piece; nothing of it may be read.

        Empty where the target takes no more, and of a closed stream. Raises as `read`, and what the source refuses.
        """
        if self._is_closed:
            return b""
        with self._awaiting() as in_flight:
            return await self._connection.pass_on(pipe, in_flight)

    @contextmanager
    def _awaiting(self) -> Generator[InFlight]:
        """Wait for more of the body in the block; errors bear the name of the request."""
        try:
            with InFlight(self._deadlines, self._started, streamed_bytes=self.length) as in_flight:
                yield in_flight
        except TimeoutError:
            words = f"the rest of a body did not come within {self._deadlines.seconds:g} s"
            raise self._name(TimedOut("DeadlinePassed", words)) from None
        except ObjectError as error:
            raise self._name(error) from None

    async def read_all(self) -> bytes:
        """Return the rest of the body. Raises as `read`."""
        pieces: list[bytes] = []
        while some := await self.read():
            pieces += some
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def wake(self) -> None:
        """End the wait of `read`: no more is needed."""
        if not self._is_closed:
            self._connection.wake()

    def close(self) -> None:
        """Read no more. The connection serves the next request where the body was read to its end."""
        if not self._is_closed:
            self._is_closed = True
            self._connection.end_body()
            self._on_end()
