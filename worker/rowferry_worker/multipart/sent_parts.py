"""What the next attempt goes on with: which parts are recorded as confirmed."""

import asyncio
from datetime import timedelta

from rowferry.errors import Cancelled, ObjectError
from rowferry.s3.operations import list_parts
from rowferry_worker.multipart.completion import Part, Upload
from rowferry_worker.multipart.records import UploadRecord
from rowferry_worker.objects.compare import DIGEST
from rowferry_worker.objects.requests import ObjectRequests

EVERY = timedelta(seconds=1)
"""How often parts are recorded. After a crash those of the last second are sent again."""


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
        while self._etags and not self._is_lost:
            await asyncio.sleep(EVERY.total_seconds())
            await self._save()
        self._recording = None

    async def _save(self) -> None:
        """Record what is there; it stays to be recorded where that fails."""
        etags = dict(self._etags)
        if not etags or self._is_lost:
            return
        is_held = await self._record.add_parts(self._upload_id, etags)
        if is_held is not None:
            self._is_lost = not is_held
            self._etags = {number: etag for number, etag in self._etags.items() if etags.get(number) != etag}


def name_part(number: int, etag: str) -> Part:
    """Return a part that the server has confirmed by an ETag, which is its digest where it can be one."""
    return Part(number, etag, etag if DIGEST.fullmatch(etag) else None)


async def is_known(s3: ObjectRequests, upload: Upload) -> bool:
    """Return whether the server may go on with an upload: False where it says that it does not know it."""
    try:
        await s3.send(list_parts(upload.large.target_key, upload_id=upload.id), tries=1)
    except Cancelled:
        raise
    except ObjectError as error:
        return error.code != "NoSuchUpload"
    return True
