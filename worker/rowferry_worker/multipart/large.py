"""What the large objects of a batch share: the time budget, the room for their parts, and the records of uploads."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from rowferry.errors import NotFinished
from rowferry_worker.multipart.records import UploadRecord, UploadRecords

NO_RECORDS = UploadRecords()
MAX_PARTS = 10_000
"""Of an object. Source: Amazon S3 User Guide, "Multipart upload limits"."""
ASK_AGAIN = timedelta(seconds=1)
"""How often an attempt asks for an upload that another batch works on."""


class PartRoom:
    """Hands places in flight to the parts that wait for one, in the order in which they asked; event loop only.

    The first part of each object under way uses the object's own place. So several objects come to equal shares, and
    while other objects wait to start, further parts get half of the places at most.
    """

    def __init__(self, offer: Callable[[], object], give_back: Callable[[], object]) -> None:
        """`offer` is called when a part waits, and calls `grant`; `give_back` when a place is free again."""
        self._offer = offer
        self._give_back = give_back
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.taken = 0
        """Places that further parts have now."""

    @property
    def is_wanted(self) -> bool:
        """Return whether a part seems to wait for a place."""
        return bool(self._waiting)

    async def take(self) -> None:
        """Wait for a place, which `release` gives back."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(granted)
        self._offer()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give a place back."""
        self.taken -= 1
        self._give_back()

    def grant(self, take_place: Callable[[], bool], most: int) -> None:
        """Give places to those who wait, while `take_place` returns True, until parts have `most`."""
        while self._waiting:
            if self._waiting[0].done():
                self._waiting.popleft()
                continue
            if self.taken >= most or not take_place():
                return
            self.taken += 1
            self._waiting.popleft().set_result(None)


@dataclass(slots=True)
class LargeObjects:
    """The bounds of a batch's large objects; by default none is continued, and the parts go one after the other."""

    records: UploadRecords = NO_RECORDS
    room: PartRoom | None = None
    deadline: float = math.inf
    """End of the batch's time budget, by time.monotonic(): no more parts start then, if the upload is recorded."""
    max_parts: int = MAX_PARTS
    """Of an object, at the production server."""

    async def take(self, key: str, legacy_key: str) -> UploadRecord:
        """Return the record of the upload of an object to a production key; wait while another batch works on it.

        Raises NotFinished where that takes longer than the time budget.
        """
        while True:
            record = await self.records.take(key, legacy_key)
            if record is not None:
                return record
            await asyncio.sleep(ASK_AGAIN.total_seconds())
            if time.monotonic() >= self.deadline:
                raise NotFinished("UploadBusy", "another batch is still writing the same object")

    @property
    def is_over(self) -> bool:
        """Whether no more parts begin in this attempt, where another can go on."""
        return time.monotonic() >= self.deadline
