"""A request that takes no coroutine: half of a worker's requests only ask whether an object is still what it was."""

import time
from collections.abc import Callable

from rowferry.errors import ObjectError, TimedOut
from rowferry.http.connection import Connection
from rowferry.http.deadlines import Deadlines, InFlight
from rowferry.http.parser import ResponseParser
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response

Judge = Callable[[Request, ResponseParser], tuple[Response, ObjectError | None]]
"""Returns a response and the error that it stands for, or raises an error."""
OnEnd = Callable[[Request, Response | ObjectError, float], None]
"""Takes a request, how it ended, and after how many seconds."""


class Glance(InFlight):
    """A HEAD from its start to its end: nothing is corrected or sent again. Event-loop thread only."""

    __slots__ = ("_connection", "_judge", "_on_end", "_parser", "_release", "_request")

    def __init__(
        self, request: Request, deadlines: Deadlines, judge: Judge, release: Callable[[Connection], None], on_end: OnEnd
    ) -> None:
        """`release` takes the connection back; then `on_end` is called, once, unless it was cancelled."""
        super().__init__(deadlines)
        self._request, self._judge, self._release = request, judge, release
        self._on_end: OnEnd | None = on_end

    def send(self, connection: Connection, head: bytes, parser: ResponseParser) -> None:
        """Send it on an idle connection."""
        self._connection, self._parser = connection, parser
        self._deadlines.add(self)
        connection.ask(head, parser, self, self._end)

    def cancel(self) -> None:
        """Close its connection, and say nothing of its end."""
        self._on_end = None
        self._connection.close()

    def expire(self) -> None:
        """End it: it is overdue."""
        words = f"{self._request.operation} had no response within {self._deadlines.seconds:g} s"
        self._connection.fail(TimedOut("DeadlinePassed", words))

    def _end(self, failure: ObjectError | None) -> None:
        self._deadlines.remove(self)
        self._release(self._connection)
        if self._on_end is None:
            return
        self._on_end(self._request, failure or self._read(), time.monotonic() - self.started)

    def _read(self) -> Response | ObjectError:
        try:
            response, error = self._judge(self._request, self._parser)
        except ObjectError as unreadable:
            return unreadable
        return response if error is None else error
