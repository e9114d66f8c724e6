"""Computing beside the event loop: a coroutine that computes for longer than a millisecond holds up all requests."""

import asyncio
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from rowferry.http.event_loop import run_in_thread
from rowferry_worker.objects.computing_process import ComputingProcess

T = TypeVar("T")
P = ParamSpec("P")
THREADS = 16
"""How many compute at once: more than there are cores, since some wait for bytes."""
PROCESSES = 4
"""The same of processes: there may be a worker process for each core beside this one."""
idle: list[ComputingProcess] = []
"""Processes that wait for calls; event-loop thread only."""


async def compute(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns, computed on another thread. Raises what it raises.

    Cancelled while it waits for its turn, it is not run; while it runs, its result is dropped.
    """
    async with _find_turns(THREADS):
        return await run_in_thread(partial(function, *args, **kwargs))


async def compute_in_process(function: Callable[..., T], chunks: Iterator[bytes], *args: Any, seconds: float) -> T:
    """Return what a function of a module returns, computed by another process. Raises what it raises.

    It gets the chunks, which may block, and the arguments. Raises TimeoutError where it computes for longer than
    `seconds`, without its waits for chunks, and ProcessFailed where its process ends: whatever it does, it is killed.
    """
    async with _find_turns(PROCESSES):
        process = idle.pop() if idle else await compute(ComputingProcess)
        try:
            returned, error = await compute(process.call, function, chunks, *args, seconds=seconds)
        except BaseException:
            process.kill()
            raise
        idle.append(process)
    if error is not None:
        raise error
    return returned


@cache
def _find_turns(count: int) -> asyncio.Semaphore:
    return asyncio.Semaphore(count)
