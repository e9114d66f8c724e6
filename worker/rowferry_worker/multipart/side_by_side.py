"""Sends the parts of one object side by side, as many as pay and as there is room for."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import NamedTuple

from rowferry.errors import Cancelled, CutOff
from rowferry_worker.multipart.completion import Part
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.part_width import FIRST, PartWidth


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

SendPart = Callable[[PartRange], Awaitable[Part]]


class PartSender:
    """The parts of one object that are under way; used once."""

    def __init__(self, send: SendPart, missing: Iterable[PartRange], large: LargeObjects, *, may_stop: bool) -> None:
        """`may_stop`: whether parts may be left for a later attempt when the time budget is over."""
        self._send = send
        self._missing = deque(missing)
        self._large = large
        self._may_stop = may_stop
        self._began = time.monotonic()
        self._sent_bytes = 0
        self._width = PartWidth(self._began, FIRST if large.room is None else max(FIRST, large.room.first_width))
        self._under_way: set[asyncio.Task[Part]] = set()
        self._own_place: asyncio.Task[Part] | None = None
        """The part that travels in the object's own place."""
        self._wish: asyncio.Task[None] | None = None
        """The wait for one more place."""
        self._part_seconds = 0.0
        """What the last part took: the next would end after the budget."""
        self.sent: list[Part] = []

    async def send_all(self) -> bool:
        """Send the missing parts, in rising order; return False where some are left, at least one being sent.

        Raises the error of the first part that fails for good; the others have ended then, or are cancelled.
        """
        try:
            while self._missing or self._under_way:
                if self._must_stop():
                    break
                self._start_parts()
                await self._wait_for_one()
            await self._end_under_way()
        except Exception as error:
            if not isinstance(error, Cancelled | CutOff):
                await self._wait_a_while()
            raise
        finally:
            await self._cancel()
            self._drop_wish()
            if self._large.room is not None:
                self._large.room.width = self._width.paid
        return not self._missing

    def _must_stop(self) -> bool:
        """Return whether the missing parts must be left to another attempt; at least one is being sent, then."""
        is_begun = bool(self._under_way or self.sent)
        is_over = self._may_stop and is_begun and self._large.is_over(self._part_seconds)
        return is_over and (self._large.is_shared or not self._ends_soon())

    def _ends_soon(self) -> bool:
        """Return whether the missing parts take no longer than the object has had of the time budget.

        Where an attempt ends, the link stands still until its last part has come and the next attempt has looked.
        """
        missing = sum(part.size_bytes for part in self._missing)
        seconds = missing * (time.monotonic() - self._began) / max(self._sent_bytes, 1)
        return time.monotonic() + seconds <= 2 * self._large.deadline - self._began

    def _start_parts(self) -> None:
        if self._missing and self._own_place is None:
            self._own_place = self._start(self._missing.popleft())
        is_wanted = self._missing and len(self._under_way) < self._width.value
        if is_wanted and self._wish is None and self._large.room is not None:
            self._wish = asyncio.create_task(self._large.room.take())
        elif not is_wanted:
            self._drop_wish()

    async def _wait_for_one(self) -> None:
        """Wait for the end of a part, or for a place for one more."""
        waiting: set[asyncio.Task[Part] | asyncio.Task[None]] = {*self._under_way}
        if self._wish is not None:
            waiting.add(self._wish)
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._wish is not None and self._wish in done:
            if self._missing:
                self._wish = None
                self._start(self._missing.popleft()).add_done_callback(self._release)
            self._drop_wish()
        self._collect()

    async def _end_under_way(self) -> None:
        while self._under_way:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            self._collect()

    def _collect(self) -> None:
        """Take the parts that have ended. Raises the error of one that has failed."""
        for task in [task for task in self._under_way if task.done()]:
            self._under_way.discard(task)
            if task is self._own_place:
                self._own_place = None
            self.sent.append(task.result())

    def _start(self, part: PartRange) -> asyncio.Task[Part]:
        task = asyncio.create_task(self._send_one(part))
        self._under_way.add(task)
        return task

    async def _send_one(self, part: PartRange) -> Part:
        begun = self._width.begin(time.monotonic())
        sent = await self._send(part)
        now = time.monotonic()
        self._part_seconds = now - begun
        self._sent_bytes += part.size_bytes
        self._width.end(begun, now, part.size_bytes)
        return sent

    def _release(self, _task: asyncio.Task[Part]) -> None:
        if self._large.room is not None:
            self._large.room.release()

    def _drop_wish(self) -> None:
        """Wait for no more places; one that has just been given goes back."""
        wish, self._wish = self._wish, None
        if wish is None:
            return
        if wish.done() and not wish.cancelled() and self._large.room is not None:
            self._large.room.release()
        wish.cancel()

    async def _wait_a_while(self) -> None:
        """Let parts under way end: one that is cut off may arrive after the upload is aborted, and stay."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=END_WITHIN.total_seconds())

    async def _cancel(self) -> None:
        """End what is under way, and wait for that."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
