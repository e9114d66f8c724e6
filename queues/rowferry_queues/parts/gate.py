"""How many parts a process sends at a time: more while that brings more bytes a second, so that each is done soon."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from rowferry.errors import NotStarted
from rowferry_worker.multipart.side_by_side import PartWidth

FIRST = 16
"""Parts at a time to begin with, as many as those of an object that one batch sends."""

AT_ONCE_SECONDS = 1.0
"""A turn that comes sooner has cost its batch no time budget to speak of."""


class PartGate:
    """Lets parts of all batches of a process through, in the order in which they came; event loop only."""

    def __init__(self) -> None:
        """Begin with FIRST at a time."""
        self._width = PartWidth(time.monotonic(), FIRST)
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._part_seconds = 0.0
        """What the last part took: the next would end after the time budget."""

    @asynccontextmanager
    async def passing(self, size_bytes: int, deadline: float, *, has_begun: Callable[[], bool]) -> AsyncGenerator[None]:
        """Hold a place while a part is sent. Raises NotStarted where it would end after the deadline of its batch.

        `has_begun`: whether its batch has sent another. The first of a batch is not too late where its turn comes at
        once: so each batch comes to its end, even if a part takes longer than the time budget.
        """
        asked = time.monotonic()
        await self._wait(deadline)
        started = time.monotonic()
        try:
            is_late = started + self._part_seconds >= deadline
            if is_late and (has_begun() or started - asked > AT_ONCE_SECONDS):
                raise NotStarted("NotStarted", "its turn did not come")
            yield
            now = time.monotonic()
            self._part_seconds = now - started
            self._width.note_sent(size_bytes, started, now)
        finally:
            self._under_way -= 1
            self._let_through()

    async def _wait(self, deadline: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._let_through()
        seconds = deadline - time.monotonic()
        try:
            await asyncio.wait_for(turn, None if seconds == float("inf") else max(0.0, seconds))
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():
                self._under_way -= 1
                self._let_through()
            if isinstance(error, TimeoutError):
                raise NotStarted("NotStarted", "its turn did not come") from None
            raise

    def _let_through(self) -> None:
        while self._waiting and self._under_way < self._width.value:
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)
