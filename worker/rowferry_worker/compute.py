"""Computing beside the event loop: a coroutine that computes for longer than a millisecond holds up all requests."""

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import ParamSpec, TypeVar

from rowferry.http.event_loop import run_in_thread

T = TypeVar("T")
P = ParamSpec("P")
THREADS = 16
"""How many compute at once: more than there are cores, since some wait for bytes."""


async def compute(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns, computed on another thread. Raises what it raises.

    Cancelled while it waits for its turn, it is not run; while it runs, its result is dropped.
    """
    async with _find_turns():
        return await run_in_thread(partial(function, *args, **kwargs))


@cache
def _find_turns() -> asyncio.Semaphore:
    return asyncio.Semaphore(THREADS)
