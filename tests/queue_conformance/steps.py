"""How long the coroutines of batches compute between two waits, in CPU time of the event loop's thread."""

import gc
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any

import pytest

from rowferry_worker.batch import copies


class TimedSteps:
    """Awaits a coroutine, and notes how long each of its steps computed."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], steps: list[float]) -> None:
        self._coroutine, self._steps = coroutine, steps

    def __await__(self) -> Generator[Any, Any, Any]:
        advance: Callable[[Any], Any] = self._coroutine.send
        value: Any = None
        while True:
            began = thread_time()
            try:
                waits_for = advance(value)
            except StopIteration as ended:
                return ended.value
            finally:
                self._steps.append(thread_time() - began)
            try:
                advance, value = self._coroutine.send, (yield waits_for)
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's
                advance, value = self._coroutine.throw, error


@contextmanager
def timed_steps() -> Iterator[list[float]]:
    """Yield the CPU seconds of each step of the coroutines that run_copies runs meanwhile."""
    steps: list[float] = []
    run = copies.CopyRun

    def make(scheduler: Any, copy: Callable[[str], Coroutine[Any, Any, Any]], *rest: Any, **named: Any) -> Any:
        async def timed(key: str) -> Any:
            return await TimedSteps(copy(key), steps)

        return run(scheduler, timed, *rest, **named)

    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(copies, "CopyRun", make)
            yield steps
    finally:
        gc.enable()
