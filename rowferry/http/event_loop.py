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

NAME = "rowferry-loop"
"""The thread's name, also in `top -H`."""

STOP_TIMEOUT = timedelta(seconds=2)

T = TypeVar("T")

_starting = threading.Lock()


def run(coroutine: Coroutine[Any, Any, T], timeout: timedelta | None = None) -> T:
    """Run a coroutine on the event loop, wait for it, and return its result. Not to be called on the loop's thread.

    Raises TimeoutError after `timeout`. An interrupted wait cancels the coroutine.
    """
    future = submit(coroutine)
    try:
        return future.result(None if timeout is None else timeout.total_seconds())
    finally:
        future.cancel()  # does nothing where it has ended


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the event loop from another thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, get_loop())


def call_soon(function: Callable[..., object], *args: object) -> None:
    """Call a short function on the event loop, from any thread."""
    get_loop().call_soon_threadsafe(function, *args)


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a blocking function on a daemon thread of its own: the end of the process does not wait for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # pyright: ignore[reportArgumentType] - without an error there is a result

    def call() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            loop.call_soon_threadsafe(finish, None, error)
        else:
            loop.call_soon_threadsafe(finish, result, None)

    threading.Thread(target=call, name="rowferry-blocking", daemon=True).start()
    return await done


def get_loop() -> asyncio.AbstractEventLoop:
    """Return the process's event loop; the first call starts it."""
    with _starting:
        return _start_loop()


@cache
def _start_loop() -> asyncio.AbstractEventLoop:
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=_run_forever, args=[loop], name=NAME, daemon=True)
    thread.start()
    atexit.register(_stop, loop, thread)
    return loop


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(OSError):  # Linux only; Python itself tells the system no names before 3.14
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(NAME, encoding="ascii")
    loop.run_forever()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop the loop before the interpreter goes: a timer that fires meanwhile may crash it."""
    loop.call_soon_threadsafe(loop.stop)
    thread.join(STOP_TIMEOUT.total_seconds())
