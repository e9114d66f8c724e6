"""What the next attempt goes on with: which parts are recorded as confirmed, and which ones the server holds."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

from rowferry.errors import AccessDenied, Cancelled, ObjectError, ObjectNotFound, ObjectRejected
from rowferry.s3.operations import list_parts
from rowferry.s3.results import ListedPart, read_parts
from rowferry_worker.multipart.completion import Part, Upload
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.records import UploadRecord
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.objects.compare import DIGEST
from rowferry_worker.objects.requests import ObjectRequests, demand

_log = logging.getLogger(__name__)

EVERY = timedelta(seconds=1)
"""How often parts are recorded. After a crash those of the last second are read again, and compared."""
GONE = frozenset({"NoSuchUpload", "UnreadableResponse"})
"""Error codes of ListParts by which an upload cannot be continued; any other that may pass is raised."""


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


async def list_sent_parts(
    s3: ObjectRequests, upload: Upload, ranges: Sequence[PartRange], large_objects: LargeObjects
) -> list[Part] | None:
    """Return the parts of an upload that the server holds in their right sizes, in order; None where it cannot tell.

    Parts of other sizes, and others than `ranges` has, are as good as not sent. A server that knows the upload, and
    does not tell its parts, will not tell them to the next attempt either: that is noted in `large_objects`.
    Raises ObjectError where the server cannot be asked now.
    """
    try:
        listed = await _list_all(s3, upload, most=len(ranges))
    except Cancelled:
        raise
    except ObjectError as error:
        if error.code not in GONE and not isinstance(error, ObjectRejected | ObjectNotFound | AccessDenied):
            raise
        fields = {"new_key": upload.large.target_key, "error": str(error)}
        _log.warning("an unfinished upload cannot be continued, so it begins anew", extra=fields)
        if error.code != "NoSuchUpload":
            large_objects.can_continue = False
        return None
    found = {part.number: part for part in listed}
    return [
        name_part(part.number, held.etag)
        for part in ranges
        if (held := found.get(part.number)) is not None and held.size_bytes == part.size_bytes and held.etag
    ]


def name_part(number: int, etag: str) -> Part:
    """Return a part that the server holds under an ETag, which is its digest where it can be one."""
    return Part(number, etag, etag if DIGEST.fullmatch(etag) else None)


async def is_known(s3: ObjectRequests, upload: Upload) -> bool:
    """Return whether the server may go on with an upload: False where it says that it does not know it."""
    try:
        await s3.send(list_parts(upload.large.target_key, upload_id=upload.id), tries=1)
    except ObjectError as error:
        return error.code != "NoSuchUpload"
    return True


async def _list_all(s3: ObjectRequests, upload: Upload, *, most: int) -> list[ListedPart]:
    """Return the parts of all pages; a server that lists the same page for ever is asked no further."""
    listed: list[ListedPart] = []
    after, follows = 0, True
    while follows and after < most:
        request = list_parts(upload.large.target_key, upload_id=upload.id, after=after)
        page, follows = demand(read_parts, await s3.send(request), request)
        page = [part for part in page if part.number > after]
        if not page:
            break
        listed += page
        after = max(part.number for part in page)
    return listed
