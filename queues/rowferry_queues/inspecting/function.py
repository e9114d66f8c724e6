"""Runs the user's function on the content of one object, in a thread of its own, within a time limit."""

import asyncio
import ctypes
import io
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

from rowferry.errors import MigrationFault, ObjectError
from rowferry.http.stream import BodyStream
from rowferry_queues.inspecting.allowed import Function
from rowferry_queues.inspecting.content import ContentFault
from rowferry_queues.inspecting.function_content import Clock, Content, Interrupted
from rowferry_queues.inspecting.function_values import choose_values, describe
from rowferry_queues.inspecting.inspection import Inspection

BUFFER_BYTES = 64 * 1024
MOST_STUCK = 8
"""After so many calls that do not end whatever is done, no further one is made: each keeps a thread."""
LOOK_EVERY = 0.5


class Call(threading.Thread):
    """One call of the function. A daemon: the end of the process does not wait for it."""

    def __init__(
        self, function: Function, content: Content, clock: Clock, *, names: Sequence[str], reads_all: bool
    ) -> None:
        """`names`: of the values that are kept; `reads_all`: what the function leaves of the object is read as well."""
        super().__init__(name="rowferry-function", daemon=True)
        self.result: Future[Mapping[str, Any]] = Future()
        self.clock = clock
        self._function = function
        self._content = content
        self._names = names
        self._reads_all = reads_all

    def run(self) -> None:
        """Call it, and keep what it returns or raises."""
        try:
            self.result.set_result(self._call())
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            self.result.set_exception(self._content.error or error)

    def interrupt(self) -> None:
        """Have the call end: its next read fails, and so does its next step in Python. Event-loop thread only."""
        self._content.interrupt()
        if self.ident is not None and self.is_alive() and not self.result.done():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(Interrupted))

    def _call(self) -> Mapping[str, Any]:
        returned = self._function(io.BufferedReader(self._content, BUFFER_BYTES))
        if self._content.error is not None:
            raise self._content.error
        if not isinstance(cast("Any", returned), Mapping):
            raise TypeError(f"it returned {type(returned).__name__}, not a dict")
        if self._reads_all:
            self._content.read_rest()
        return choose_values(dict(returned), self._names)


class Functions:
    """Calls of a function in this process. Event-loop thread only."""

    def __init__(self, whole: int, streamed: int) -> None:
        """`whole`, `streamed`: how many are called at once, with whole bodies, and while their bodies still come."""
        self._turns = {False: asyncio.Semaphore(whole), True: asyncio.Semaphore(streamed)}
        self._stuck: list[Call] = []

    async def call(
        self,
        function: Function,
        inspection: Inspection,
        source: bytes | BodyStream,
        key: str,
        *,
        names: Sequence[str],
        reads_all: bool,
        seconds: float,
    ) -> Mapping[str, Any]:
        """Return the values of these names that the function returns.

        Raises ContentFault where it fails, ObjectError where the body does.
        """
        async with self._turns[not isinstance(source, bytes)]:
            self._refuse_more_stuck()
            clock = Clock()
            call = Call(function, Content(inspection, source, clock, key), clock, names=names, reads_all=reads_all)
            call.start()
            try:
                await self._wait_for(call, seconds)
            except BaseException:
                call.interrupt()
                self._stuck.append(call)
                raise
        try:
            return call.result.result()
        except ObjectError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises is the entry's failure
            raise ContentFault("FunctionFailed", f"the function failed with {describe(error)}") from None

    async def _wait_for(self, call: Call, seconds: float) -> None:
        """Wait for the end of a call. Raises ContentFault once it has computed for longer than this."""
        ended = asyncio.wrap_future(call.result)
        ended.add_done_callback(lambda done: done.cancelled() or done.exception())  # it is read from `result`
        while not ended.done():
            left = seconds - call.clock.read()
            if left <= 0:
                words = f"the function did not end within {seconds:g} s (function_seconds)"
                raise ContentFault("FunctionTimedOut", words)
            await asyncio.wait([ended], timeout=min(left + 0.01, LOOK_EVERY))

    def _refuse_more_stuck(self) -> None:
        """Raise MigrationFault where too many calls have not ended although they were interrupted."""
        self._stuck = [call for call in self._stuck if call.is_alive()]
        if len(self._stuck) >= MOST_STUCK:
            words = f"{MOST_STUCK} calls of the function of [queue.inspect] do not end in this process"
            raise MigrationFault(f"{words}; give what it waits for a time limit, and restart the worker.")
