"""Records which parts of an upload the server has confirmed: the next attempt believes these unread."""

import asyncio
from datetime import timedelta

from rowferry_worker.objects.completion import Part
from rowferry_worker.objects.uploads import UploadRecord

GATHER_FOR = timedelta(seconds=0.25)
"""So long parts are gathered: they often end together."""
PAUSE = timedelta(seconds=0.75)
"""Between two records. After a crash the parts of the last second are read again, and compared."""
LONGEST_PAUSE = timedelta(minutes=1)
"""Between two tries, while the database is away."""


class ConfirmedParts:
    """The parts of one upload that are to be recorded; event loop only."""

    def __init__(self, record: UploadRecord, upload_id: str) -> None:
        """Begin with none."""
        self._record = record
        self._upload_id = upload_id
        self._etags: dict[int, str] = {}
        """Those that are not recorded yet."""
        self._recording: asyncio.Task[None] | None = None
        self._is_lost = not record.stands

    def add(self, part: Part) -> None:
        """Have a part recorded soon."""
        self._etags[part.number] = part.etag
        if self._recording is None and not self._is_lost:
            self._recording = asyncio.create_task(self._record_in_turns())

    async def save(self) -> None:
        """Record what is left, now."""
        self.stop()
        await self._save()

    def stop(self) -> None:
        """Record nothing more, but what is under way."""
        if self._recording is not None:
            self._recording.cancel()
            self._recording = None

    async def _record_in_turns(self) -> None:
        pause = PAUSE
        while self._etags and not self._is_lost:
            await asyncio.sleep(GATHER_FOR.total_seconds())
            is_saved = await self._save()
            pause = PAUSE if is_saved else min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause.total_seconds())
        self._recording = None

    async def _save(self) -> bool:
        """Record what is there; it stays to be recorded where that fails. Return whether it did not."""
        etags = dict(self._etags)
        if not etags or self._is_lost:
            return True
        is_held = await self._record.add_parts(self._upload_id, etags)
        if is_held is None:
            return False
        self._is_lost = not is_held
        self._etags = {number: etag for number, etag in self._etags.items() if etags.get(number) != etag}
        return True
