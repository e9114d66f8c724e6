"""Sends the parts of one object side by side, as many as pay and as there is room for."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from rowferry_worker.multipart.completion import Part
from rowferry_worker.multipart.large import LargeObjects

FIRST = 16
"""Parts of an object that begins: as many of 5 MiB as the memory for bodies has room for; a fast link is full with
these."""
MOST = 64
GROWTH = 2.0
GAIN = 1.15
"""A round of more parts that is not this much faster did not pay."""
PROBE_EVERY = 6
"""Rounds at one width before it is tried again whether more pay: the link may have become free."""


class PartWidth:
    """Doubles the parts under way while a round of them is faster than the best before; times are seconds."""

    def __init__(self, now: float, first: int = FIRST, most: int = MOST) -> None:
        """`now` is any clock's time."""
        self.value = min(first, most)
        """How many parts may be under way."""
        self._most = most
        self._paid = self.value
        """The width that has paid last."""
        self._best = 0.0
        self._flat_rounds = 0
        self._begin_round(now)

    def note_sent(self, size_bytes: int, started: float, now: float) -> None:
        """Note a part that was sent, and when it was started; a round ends with as many of them as travel at once."""
        if started < self._began:
            return  # it was under way with another width
        self._bytes += size_bytes
        self._parts += 1
        if self._parts >= self.value and now > self._began:
            self._end_round(self._bytes / (now - self._began))
            self._begin_round(now)

    def _end_round(self, bytes_per_second: float) -> None:
        if bytes_per_second >= self._best * GAIN:
            self._best, self._paid, self._flat_rounds = bytes_per_second, self.value, 0
            self.value = min(self._most, int(self.value * GROWTH))
            return
        self._flat_rounds += 1
        if self.value > self._paid:
            self.value = self._paid
        elif self._flat_rounds >= PROBE_EVERY:
            self._best, self._flat_rounds = bytes_per_second, 0
            self.value = min(self._most, int(self.value * GROWTH))

    def _begin_round(self, now: float) -> None:
        self._began, self._bytes, self._parts = now, 0, 0


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


SendPart = Callable[[PartRange], Awaitable[Part]]


class PartSender:
    """The parts of one object that are under way; used once."""

    def __init__(self, send: SendPart, missing: Iterable[PartRange], large: LargeObjects, *, may_stop: bool) -> None:
        """`may_stop`: whether parts may be left for a later attempt when the time budget is over."""
        self._send = send
        self._missing = deque(missing)
        self._large = large
        self._may_stop = may_stop
        self._width = PartWidth(time.monotonic())
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

        Raises the error of the first part that fails for good; the others are cancelled and have ended then.
        """
        try:
            while self._missing or self._under_way:
                if self._may_stop and (self._under_way or self.sent) and self._large.is_over(self._part_seconds):
                    break
                self._start_parts()
                await self._wait_for_one()
            await self._end_under_way()
        except BaseException:
            await self._cancel()
            raise
        finally:
            self._drop_wish()
        return not self._missing

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
        started = time.monotonic()
        sent = await self._send(part)
        now = time.monotonic()
        self._part_seconds = now - started
        self._width.note_sent(part.size_bytes, started, now)
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

    async def _cancel(self) -> None:
        """End what is under way, and wait for that."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
