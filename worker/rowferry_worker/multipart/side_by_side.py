"""Sends the parts of one object side by side, as many as there is room for."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import NamedTuple

from rowferry.errors import Cancelled, CutOff
from rowferry_worker.multipart.completion import Part
from rowferry_worker.multipart.large import LargeObjects, PartRoom


class PartRange(NamedTuple):
    """Which bytes of the object are which part."""

    number: int
    """From 1."""
    first: int
    last: int
    """Included."""

    @property
    def size_bytes(self) -> int:
        """Return the size of the part."""
        return self.last - self.first + 1


END_WITHIN = timedelta(seconds=5)
"""How long parts under way may take to end once another has failed: what a server has begun it may finish, and keep."""
AT_ONCE = 20
"""Parts of one object that travel side by side, at most: they fill a link that is slow for each connection."""
SendPart = Callable[[PartRange], Awaitable[Part]]


class PartSender:
    """Sends the parts of one object; used once. Several tasks take part after part, each in a place of its own."""

    def __init__(self, send: SendPart, missing: Iterable[PartRange], large: LargeObjects, *, may_stop: bool) -> None:
        """`may_stop`: whether parts may be left for a later attempt when the time budget is over."""
        self._send = send
        self._missing = deque(missing)
        self._large = large
        self._may_stop = may_stop
        self._is_begun = self._is_stopped = False
        self._line = asyncio.Lock()
        """One task at a time waits for a place, so that several objects come to equal shares."""
        self._waiting: set[asyncio.Task[None] | None] = set()
        """The tasks that wait for a place."""
        self.sent: list[Part] = []

    async def send_all(self) -> bool:
        """Send the missing parts, in rising order; return False where some are left, at least one being sent.

        Raises the error of the first part that fails for good; the others have ended then, or are cancelled.
        """
        room, others = self._large.room, min(AT_ONCE, len(self._missing)) - 1
        tasks = [asyncio.create_task(self._send_in_own_place())]
        if room is not None:
            tasks += [asyncio.create_task(self._send_elsewhere(room)) for _ in range(others)]
        try:
            done, under_way = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            error = next((error for task in done if not task.cancelled() and (error := task.exception())), None)
            if error is not None:
                self._stop()
                if under_way and not isinstance(error, Cancelled | CutOff):
                    await asyncio.wait(under_way, timeout=END_WITHIN.total_seconds())
                raise error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return not self._missing

    async def _send_in_own_place(self) -> None:
        """Send parts, one after the other, in the object's own place."""
        while not self._is_over():
            await self._send_one()
        self._stop()

    async def _send_elsewhere(self, room: PartRoom) -> None:
        """Send parts, each in a place that it waits for."""
        while not self._is_over():
            self._waiting.add(asyncio.current_task())
            async with self._line:
                await asyncio.sleep(0)  # let other objects ask as well
                await room.take()
            self._waiting.discard(asyncio.current_task())
            try:
                if not self._is_over():
                    await self._send_one()
            finally:
                room.release()

    async def _send_one(self) -> None:
        part, self._is_begun = self._missing.popleft(), True
        self.sent.append(await self._send(part))

    def _stop(self) -> None:
        """Begin no more parts, and wait for no more places."""
        self._is_stopped = True
        for task in self._waiting:
            if task is not None:
                task.cancel()

    def _is_over(self) -> bool:
        """Return whether no more parts begin: none is missing, one has failed, or they are left to another attempt."""
        if self._is_stopped or not self._missing:
            return True
        return self._may_stop and self._is_begun and self._large.is_over
