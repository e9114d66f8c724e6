"""Computing beside the event loop: a coroutine that computes for longer than a millisecond holds up all requests."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from rowferry_worker.machine import count_cores

T = TypeVar("T")
P = ParamSpec("P")


class ComputePool:
    """Threads that run functions, one a core. They are daemons: the end of the process waits for none of them.

    What releases the interpreter's lock (inflating, digests) runs side by side; all else takes turns.
    """

    def __init__(self, threads: int) -> None:
        """Start the threads."""
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        for number in range(threads):
            Thread(target=self._run, name=f"rowferry-compute-{number}", daemon=True).start()

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Run a function once a thread is free."""
        future: Future[T] = Future()
        self._calls.put((future, function))
        return future

    def _run(self) -> None:
        while True:
            future, function = self._calls.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                future.set_exception(error)


@cache
def get_pool() -> ComputePool:
    """Return the pool of this process."""
    return ComputePool(count_cores())


async def compute(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns, computed beside the event loop. Raises what it raises.

    Cancelled while it waits for a thread, it is not run; while it runs, its result is dropped.
    """
    return await asyncio.wrap_future(get_pool().submit(partial(function, *args, **kwargs)))
