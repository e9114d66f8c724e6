"""What the large objects of a batch share: the time budget, the room for their parts, and the records of uploads."""

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import timedelta

from rowferry.errors import NotFinished
from rowferry_worker.objects.part_room import PartRoom
from rowferry_worker.objects.uploads import UploadRecord, UploadRecords

NO_RECORDS = UploadRecords()
ASK_AGAIN = timedelta(seconds=1)
"""How often an attempt asks for an upload that another batch works on."""


@dataclass(slots=True)
class LargeObjects:
    """The bounds of a batch's large objects; by default none is continued, and the parts go one after the other."""

    records: UploadRecords = NO_RECORDS
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
        while True:
            record = await self.records.take(key, legacy_key)
            if record is not None:
                return record
            await asyncio.sleep(ASK_AGAIN.total_seconds())
            if time.monotonic() >= self.deadline:
                raise NotFinished("UploadBusy", "another batch is still writing the same object")

    def is_over(self, ahead_seconds: float = 0.0) -> bool:
        """Return whether parts must be left to another attempt: the time is used up, or will be in `ahead_seconds`."""
        return self.can_continue and time.monotonic() + ahead_seconds >= self.deadline
