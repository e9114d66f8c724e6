"""One large object, from its first look to its completion: what a batch of objects does for it in one attempt."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from rowferry.batch import Outcome
from rowferry.errors import Awaited, NotRecorded, ObjectError, ObjectNotFound
from rowferry.formatting import count
from rowferry.s3.errors import UPLOAD_LOST
from rowferry.s3.operations import abort_multipart_upload
from rowferry.s3.responses import Response
from rowferry_queues.parts.spec import PartsSettings
from rowferry_worker.copying.copy import CopyOptions, CopyResult
from rowferry_worker.copying.transfer import UPLOAD, look_at_completed
from rowferry_worker.multipart.completion import Large, Upload, complete_upload
from rowferry_worker.multipart.part_size import part_size, split_range
from rowferry_worker.multipart.records import UploadRecord, UploadRecords
from rowferry_worker.multipart.upload import LargeCopy
from rowferry_worker.objects.compare import compare_headers, is_digest
from rowferry_worker.objects.conditional_writes import ObjectExists
from rowferry_worker.objects.intents import Protect, Replace, Target
from rowferry_worker.objects.own_copies import KnownCopy, demand_recorded
from rowferry_worker.objects.requests import ObjectRequests, object_changed, size_of
from rowferry_worker.properties.settle import Description

Standing = Literal["nothing", "same", "own", "different"]
"""No object; one whose headers do not say that it has other bytes; a copy of ours of what the legacy object was before;
another one."""
Wanted = tuple[str, str, list[int]]
"""A production key, its upload, and the numbers of parts that are not recorded, as `rowferry.add_parts` takes them."""


@dataclass(slots=True)
class SharedCopies:
    """The large objects of one attempt at a batch; on the event loop only."""

    s3: ObjectRequests
    records: UploadRecords
    options: CopyOptions
    settings: PartsSettings
    replaces_own: bool
    """Whether a copy of ours is brought up to date."""
    begun: frozenset[str]
    """The production keys that have an upload recorded."""
    wanted: dict[str, Wanted] = field(default_factory=dict[str, Wanted])
    """By legacy key: parts that are to be batches, unless they are."""

    async def advance(self, source_key: str, target_key: str) -> CopyResult:
        """Bring an object as far as this attempt can.

        MIGRATED: it was completed now. KEPT: nothing is to be done by parts. CONFLICT: a different object stands
        there, and was left alone. Raises Awaited where parts are to be sent, ObjectNotFound where there is no legacy
        object, and any other ObjectError as it comes.
        """
        seen = await self._look(source_key, target_key)
        if seen is None:
            return CopyResult(Outcome.KEPT)
        existing = await self.s3.find("production", target_key)
        known = await self.records.find_copy_of(source_key, target_key)
        standing = judge_standing(seen, existing, known)
        if standing == "same" and target_key not in self.begun:
            return CopyResult(Outcome.KEPT)
        record = await self.records.take(target_key, source_key)
        if record is None:
            raise Awaited("UploadBusy", "another batch is at work on the same object")
        work, described = await self._describe(Large(source_key, seen, target_key), record)
        if existing is not None and (completed := find_completed(work, existing)):
            return await self._settle(completed, described)
        if standing != "nothing" and not (standing == "own" and self.replaces_own):
            await work.forget()
            return CopyResult(Outcome.KEPT if standing == "same" else Outcome.CONFLICT)
        upload, plan = await work.open(self._choose_part(size_of(seen), known if standing == "own" else None))
        if not record.stands:
            await work.abort(upload)
            raise NotRecorded("NotRecorded", "PostgreSQL did not record an upload; the next attempt begins it anew")
        sent = {part.number for part in upload.parts}
        missing = [part.number for part in split_range(plan.size_bytes, plan.part_bytes) if part.number not in sent]
        if missing:
            self.wanted[source_key] = target_key, upload.id, missing
            raise Awaited("PartsLeft", f"{count(len(missing), 'part', 'parts')} not sent yet")
        return await self._complete(work, upload, described, existing)

    async def _look(self, source_key: str, target_key: str) -> Response | None:
        """Return the headers of the legacy object; None if it is not large, or not any more."""
        try:
            seen = await self.s3.head("legacy", source_key)
        except ObjectNotFound:
            await self._abort_begun(source_key, target_key)
            raise
        if size_of(seen) >= self.settings.least_bytes:
            return seen
        await self._abort_begun(source_key, target_key)
        return None

    async def _abort_begun(self, source_key: str, target_key: str) -> None:
        """Abort the upload that an earlier attempt has begun, unless another batch holds it."""
        record = await self.records.take(target_key, source_key) if target_key in self.begun else None
        if record is not None and await record.end() and record.recorded is not None:
            with suppress(ObjectError):
                await self.s3.send(abort_multipart_upload(target_key, upload_id=record.recorded.upload_id))

    async def _describe(self, large: Large, record: UploadRecord) -> tuple[LargeCopy, Description]:
        """Return an object's upload, and what the object shall be."""
        method, properties = self.options.method, self.options.properties
        described = await properties.describe(
            self.s3, large.source_key, large.seen, UPLOAD, keep_class=method.keeps_class
        )
        source = method.part_source(self.s3, large)
        return LargeCopy(self.s3, large, described.headers, source, record, self.options.large_objects), described

    def _choose_part(self, size_bytes: int, known: KnownCopy | None) -> int:
        """Return the size of the parts; those of the copy that is replaced, so that they can be compared."""
        max_parts = self.options.large_objects.max_parts
        if known is not None and size_bytes <= known.part_bytes * max_parts:
            return known.part_bytes
        return part_size(size_bytes, self.settings.part_bytes or self.options.method.smallest_parts, max_parts)

    async def _complete(
        self, work: LargeCopy, upload: Upload, described: Description, existing: Response | None
    ) -> CopyResult:
        """Put the object together, in the place of nothing or of the object that was seen, and of no other."""
        target = Target(self.s3, self.options.support, upload.large.target_key)
        intent = Protect() if existing is None else Replace(existing.etag or "")
        try:
            async with work.aborting(upload):
                await complete_upload(target, intent, upload, self.records)
        except ObjectExists:
            return CopyResult(Outcome.CONFLICT)
        except ObjectError as error:
            if error.code in UPLOAD_LOST:
                raise Awaited("NoSuchUpload", "the server has lost the upload; it begins anew") from error
            raise
        return await self._settle(upload, described)

    async def _settle(self, upload: Upload, described: Description) -> CopyResult:
        """See to the properties of an object that is completed, and remember it."""
        key, composite = upload.large.target_key, upload.composite_etag()
        written = await look_at_completed(self.s3, upload.large, None)
        if composite is not None and is_digest(written) and written.etag != composite:
            raise object_changed("production", key)
        await self.options.properties.settle(self.s3, key, described, UPLOAD, written)
        demand_recorded(await self.records.tell("record_copy", key, upload.id, written.etag or ""))
        return CopyResult(Outcome.MIGRATED, etag=written.etag or "")


def find_completed(work: LargeCopy, existing: Response) -> Upload | None:
    """Return the upload that an earlier attempt has completed without noting it; None where there is none."""
    found = work.record.recorded
    if found is None or not found.is_of(work.plan(found.part_bytes)):
        return None
    upload = work.gather(found)
    is_it = upload.composite_etag() == existing.etag and size_of(existing) == found.size_bytes
    return upload if is_it else None


def judge_standing(seen: Response, existing: Response | None, known: KnownCopy | None) -> Standing:
    """Return what stands at the production key.

    `seen`, `existing`: the headers of the legacy and the production object; `known`: what is remembered of an earlier
    copy of this legacy object.
    """
    if existing is None:
        return "nothing"
    if known is not None and (known.etag, known.size_bytes) == (existing.etag, size_of(existing)):
        return "same" if known.source_etag == seen.etag else "own"
    return "different" if compare_headers(seen, existing) is False else "same"
