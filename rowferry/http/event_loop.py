"""The process's one event loop: uvloop on a daemon thread, shared by all clients."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from rowferry.interrupts import hold_interrupts

NAME = "rowferry-loop"
"""The thread's name, also in `top -H`."""

STOP_TIMEOUT = timedelta(seconds=10)
"""Far more than a callback takes: the interpreter must not end while the loop runs."""

T = TypeVar("T")

_starting = threading.Lock()
_stopped = threading.Event()


class LoopStopped(RuntimeError):
    """The interpreter ends: the event loop runs nothing any more."""


def run(coroutine: Coroutine[Any, Any, T], timeout: timedelta | None = None) -> T:
    """Run a coroutine on the event loop, wait for it, and return its result. An interrupted wait cancels it.

    Raises TimeoutError after `timeout`, RuntimeError on the loop's own thread, which would wait for itself, and
    LoopStopped as the interpreter ends.
    """
    if threading.current_thread().name == NAME:
        coroutine.close()
        raise RuntimeError("the event loop's own thread must not wait for a coroutine: await it")
    future = submit(coroutine)
    try:
        return future.result(None if timeout is None else timeout.total_seconds())
    finally:
        future.cancel()  # does nothing where it has ended


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the event loop from another thread. Raises LoopStopped as the interpreter ends."""
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, get_loop())
    except LoopStopped:
        coroutine.close()
        raise


def call_soon(function: Callable[..., object], *args: object) -> None:
    """Call a short function on the event loop, from any thread."""
    get_loop().call_soon_threadsafe(function, *args)


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a blocking function on a daemon thread of its own: the end of the process does not wait for it."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from here on a cancelled wait leaves the thread alone

    def call() -> None:
        try:
            done.set_result(function())
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            done.set_exception(error)

    threading.Thread(target=call, name="rowferry-blocking", daemon=True).start()
    return await asyncio.wrap_future(done)


def get_loop() -> asyncio.AbstractEventLoop:
    """Return the process's event loop; the first call starts it. Raises LoopStopped as the interpreter ends."""
    with _starting:
        if _stopped.is_set():
            raise LoopStopped("the event loop has stopped: the interpreter ends")
        return _start_loop()


@cache
def _start_loop() -> asyncio.AbstractEventLoop:
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=_run_forever, args=[loop], name=NAME, daemon=True)
    with hold_interrupts():  # lest a thread runs that is not stopped in the end
        thread.start()
        atexit.register(_stop, loop, thread)
    return loop


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(OSError):  # Linux only; Python itself tells the system no names before 3.14
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(NAME, encoding="ascii")
    loop.run_forever()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop the loop before the interpreter ends: a timer that fires meanwhile may crash it.

    The loop is not closed, as that would wait for name lookups.
    """
    _stopped.set()
    with hold_interrupts():
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_TIMEOUT.total_seconds())
