"""What the large objects of a batch share: the time budget, the room for their parts, and the records of uploads."""

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import timedelta

from rowferry.errors import NotFinished
from rowferry_worker.objects.part_room import PartRoom
from rowferry_worker.objects.uploads import KnownCopy, UploadRecord, UploadRecords

ASK_AGAIN = timedelta(seconds=1)
"""How often an attempt asks for an upload that another batch works on."""


@dataclass(slots=True)
class LargeObjects:
    """The bounds of a batch's large objects; by default none is continued, and the parts go one after the other."""

    records: UploadRecords | None = None
    room: PartRoom | None = None
    deadline: float = math.inf
    """End of the batch's time budget, by time.monotonic(): no more parts start then, if the upload is recorded."""
    can_continue: bool = True
    """False once the production server did not tell the parts of an unfinished upload: another attempt would begin anew
    as well, so objects go on to their end, however long that takes."""

    async def take(self, key: str, legacy_key: str) -> UploadRecord:
        """Return the record of the upload of an object to a production key; wait while another batch works on it.

        Raises NotFinished where that takes longer than the time budget.
        """
        if self.records is None:
            return UploadRecord(None, key)
        while True:
            record = await self.records.take(key, legacy_key)
            if record is not None:
                return record
            await asyncio.sleep(ASK_AGAIN.total_seconds())
            if time.monotonic() >= self.deadline:
                raise NotFinished("UploadBusy", "another batch is still writing the same object")

    async def is_known_copy(self, legacy_key: str, legacy_etag: str, key: str, etag: str) -> bool:
        """Return whether the production object is remembered as a copy of just this legacy object, by both ETags."""
        known = await self.records.find_copy(key) if self.records else None
        return (
            known is not None
            and self.records is not None
            and (known.legacy, known.legacy_key) == (self.records.legacy, legacy_key)
            and (known.source_etag, known.etag) == (legacy_etag, etag)
        )

    async def find_copy(self, key: str) -> KnownCopy | None:
        """Return what is remembered of a production object, None where that is nothing."""
        return await self.records.find_copy(key) if self.records else None

    async def is_own_copy(self, key: str, etag: str) -> bool:
        """Return whether a production object is remembered as a copy of ours, of whatever the legacy object was."""
        known = await self.find_copy(key)
        return known is not None and known.etag == etag

    async def note_write(self, key: str, legacy_key: str, *, is_pending: bool = True) -> None:
        """Remember that an object is about to be written, lest what is found there later is taken for another's.

        Without `is_pending`: nothing was written.
        """
        if self.records is not None:
            await self.records.note_write(key, legacy_key, is_pending=is_pending)

    async def note_copy(self, key: str, etag: str, legacy_key: str, source_etag: str) -> None:
        """Remember a production object as a copy of ours, lest it is taken for the application's work later."""
        if self.records is not None and etag:
            await self.records.note_copy(key, etag, legacy_key, source_etag)

    def is_over(self, ahead_seconds: float = 0.0) -> bool:
        """Return whether parts must be left to another attempt: the time is used up, or will be in `ahead_seconds`."""
        return self.can_continue and time.monotonic() + ahead_seconds >= self.deadline
