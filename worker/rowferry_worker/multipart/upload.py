"""Objects too large for one request: a multipart upload, continued where an earlier attempt has left one."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from rowferry.errors import AccessDenied, NotFinished, ObjectDamaged, ObjectError, ObjectRejected, SideFault
from rowferry.s3.errors import UPLOAD_LOST
from rowferry.s3.operations import abort_multipart_upload, create_multipart_upload
from rowferry.s3.results import read_upload_id
from rowferry_worker.multipart.completion import Large, Part, Upload, complete_upload
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.part_size import part_size, split_range
from rowferry_worker.multipart.records import Recorded, UploadRecord
from rowferry_worker.multipart.sent_parts import ConfirmedParts, is_known, name_part
from rowferry_worker.multipart.side_by_side import PartRange, PartSender
from rowferry_worker.multipart.streamed_parts import PartSource
from rowferry_worker.objects.conditional_writes import ObjectExists
from rowferry_worker.objects.intents import Intent, Target, check_early
from rowferry_worker.objects.requests import ObjectRequests, demand, size_of

_log = logging.getLogger(__name__)

ABORT_WITHIN = timedelta(seconds=3)
"""How long the abort of an upload may take whose copy is cancelled."""


async def send_in_parts(
    target: Target,
    intent: Intent,
    large: Large,
    headers: Sequence[tuple[str, str]],
    source: PartSource,
    *,
    part_bytes: int,
    large_objects: LargeObjects,
) -> str | None:
    """Write an object part by part, several at once, and return the ETag that the server told of it, if it did.

    What was sent before is not sent again, where the upload is recorded and its legacy object is still the same.
    An upload that fails is aborted, unless another attempt can go on with it or it may be completed by now. Raises
    NotFinished when the time budget ends before the last part is sent: at least one was.
    """
    if not size_of(large.seen):
        raise ObjectRejected("EmptyUpload", "an empty object has no parts")
    record = await large_objects.take(large.target_key, large.source_key)
    work = LargeCopy(target.s3, large, headers, source, record, large_objects)
    try:
        await check_early(target, intent)
    except ObjectExists:
        await work.forget()
        raise
    upload, plan = await work.open(part_size(size_of(large.seen), part_bytes, large_objects.max_parts))
    async with work.aborting(upload):
        await work.send_missing(upload, plan)
        await source.check_source()
        told = await complete_upload(target, intent, upload, large_objects.records)
    await record.end()
    return told


@dataclass(frozen=True, slots=True)
class LargeCopy:
    """What the steps of one object's upload share."""

    s3: ObjectRequests
    large: Large
    headers: Sequence[tuple[str, str]]
    """Those of the object to be: they are given when the upload is created."""
    source: PartSource
    record: UploadRecord
    large_objects: LargeObjects

    async def open(self, part_bytes: int) -> tuple[Upload, Recorded]:
        """Return the upload that an earlier attempt has begun, with the parts that it has sent, or a new one."""
        plan, found = self.plan(part_bytes), self.record.recorded
        if found is not None:
            upload = self.gather(found)
            if found.is_of(plan) and await is_known(self.s3, upload):
                fields = {"new_key": self.large.target_key, "sent": len(upload.parts)}
                _log.info("continuing the upload of an earlier attempt", extra=fields)
                if upload.parts:
                    self.source.skip_whole()
                return upload, found
            await send_abort(self.s3, upload)
        return await self.begin(plan)

    async def begin(self, plan: Recorded) -> tuple[Upload, Recorded]:
        """Begin a new upload, and record it."""
        begin = create_multipart_upload(self.large.target_key, headers=self.headers)
        upload_id = demand(read_upload_id, await self.s3.send(begin), begin)
        upload = Upload(self.large, upload_id, self.source.checks_digests)
        try:
            await self.record.save(plan := plan._replace(upload_id=upload_id))
        except BaseException:
            await self.abort(upload, hurry=True)
            raise
        return upload, plan

    def gather(self, found: Recorded) -> Upload:
        """Return an upload that is recorded, with its recorded parts.

        What else the server may list is sent again: it may be the rest of a part that was cut off.
        """
        named = sorted(name_part(number, etag) for number, etag in self.record.parts.items())
        return Upload(self.large, found.upload_id, self.source.checks_digests, named)

    def plan(self, part_bytes: int) -> Recorded:
        """Return what is to be recorded of an upload that has no id yet."""
        seen, legacy = self.large.seen, self.large_objects.records.legacy
        described = hashlib.sha256(repr(sorted(self.headers)).encode()).hexdigest()
        return Recorded("", legacy, self.large.source_key, f"{seen.etag} {described}", size_of(seen), part_bytes)

    @asynccontextmanager
    async def aborting(self, upload: Upload) -> AsyncGenerator[None]:
        """Abort the upload where the block fails, unless another attempt can go on with it or it may be completed."""
        try:
            yield
        except BaseException as error:
            if not upload.may_be_completed and not (self.record.stands and may_continue(error)):
                await self.abort(upload, hurry=isinstance(error, asyncio.CancelledError))
            raise

    async def send_missing(self, upload: Upload, plan: Recorded) -> None:
        """Send the parts that the upload does not have. Raises NotFinished where the time budget ends before."""
        known = {part.number for part in upload.parts}
        missing = [part for part in split_range(plan.size_bytes, plan.part_bytes) if part.number not in known]
        confirmed = ConfirmedParts(self.record, upload.id)

        async def send(part: PartRange) -> Part:
            sent = await self.source.send(upload.id, part)
            confirmed.add(sent)
            return sent

        sender = PartSender(send, missing, self.large_objects, may_stop=self.record.stands)
        try:
            is_whole = await sender.send_all()
        except Exception:
            await confirmed.save()
            raise
        finally:
            confirmed.stop()
        upload.parts.extend(sender.sent)
        upload.parts.sort()
        if not is_whole:
            await confirmed.save()
            count, total = len(upload.parts), len(known) + len(missing)
            raise NotFinished("NotFinished", f"{count} of {total} parts are sent; the next attempt goes on")

    async def forget(self) -> None:
        """Take back what an earlier attempt has left, or the record that this one has begun: it is not needed."""
        if self.record.recorded is None:
            await self.record.end()
        else:
            await self.abort(Upload(self.large, self.record.recorded.upload_id, checks_digests=False))

    async def abort(self, upload: Upload, *, hurry: bool = False) -> None:
        """Abort an upload, as far as the server lets us, also when the copy is cancelled meanwhile."""
        abort = asyncio.ensure_future(self._abort(upload))
        seconds = ABORT_WITHIN.total_seconds()
        try:
            await asyncio.wait([abort], timeout=seconds if hurry else None)
        except asyncio.CancelledError:
            await asyncio.wait([abort], timeout=seconds)
            raise
        finally:
            abort.cancel()  # does nothing where it has ended

    async def _abort(self, upload: Upload) -> None:
        if await self.record.end():  # otherwise another attempt has taken it over
            await send_abort(self.s3, upload)


def may_continue(error: BaseException) -> bool:
    """Return whether another attempt can go on with an upload that has ended with this error."""
    if isinstance(error, ObjectError):
        is_lost = isinstance(error, ObjectDamaged | AccessDenied) or error.code in {"ObjectChanged", *UPLOAD_LOST}
        return not is_lost and (error.retryable or isinstance(error, SideFault))
    return True


async def send_abort(s3: ObjectRequests, upload: Upload) -> None:
    """Abort an upload, as far as the server lets us."""
    with suppress(ObjectError):
        await s3.send(abort_multipart_upload(upload.large.target_key, upload_id=upload.id))
