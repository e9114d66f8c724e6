"""One large object, from its first look to its completion: what a batch of objects does for it in one attempt."""

from contextlib import suppress
from typing import NamedTuple

from rowferry.batch import Outcome
from rowferry.errors import Awaited, NotRecorded, ObjectError, ObjectNotFound
from rowferry.formatting import count
from rowferry.s3.clocks import NO_SKEW
from rowferry.s3.operations import abort_multipart_upload, list_parts
from rowferry.s3.responses import Response
from rowferry_queues.parts.spec import PartsSettings, Replaces
from rowferry_queues.parts.standing import judge_standing, may_replace
from rowferry_worker.copying.copy import CopyOptions, CopyResult
from rowferry_worker.copying.transfer import UPLOAD, look_at_completed
from rowferry_worker.multipart.completion import Large, Part, Upload, complete_upload
from rowferry_worker.multipart.part_size import MAX_PARTS, part_size, split_range
from rowferry_worker.multipart.records import Recorded, UploadRecord
from rowferry_worker.multipart.upload import LargeCopy, may_continue, send_abort
from rowferry_worker.objects.compare import DIGEST, compare_headers, is_digest
from rowferry_worker.objects.conditional_writes import ObjectExists, WriteGuard
from rowferry_worker.objects.own_copies import KnownCopy
from rowferry_worker.objects.requests import ObjectRequests, object_changed, size_of
from rowferry_worker.properties.settle import Description


class Wanted(NamedTuple):
    """Parts of an upload that are not recorded, as `rowferry.add_parts` takes them."""

    production: str
    key: str
    upload_id: str
    numbers: list[int]


class SharedCopies:
    """The large objects of one attempt at a batch; on the event loop only."""

    def __init__(
        self,
        s3: ObjectRequests,
        options: CopyOptions,
        settings: PartsSettings,
        replaces: Replaces,
        *,
        begun: frozenset[str],
    ) -> None:
        """`replaces`: which different production objects may be replaced.

        `begun`: the production keys that have an upload recorded.
        """
        self._s3 = s3
        self._records = options.large_objects.records
        self._options = options
        self._settings = settings
        self._replaces: Replaces = replaces
        self._begun = begun
        self.wanted: dict[str, Wanted] = {}
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
        existing = await self._s3.find("production", target_key)
        known = await self._find_known(source_key, target_key)
        skew = NO_SKEW
        if existing is not None and compare_headers(seen, existing) is False:
            skew = await self._options.clocks.measure(self._s3, source_key, target_key)
        standing = judge_standing(seen, existing, known, skew)
        if standing == "older" and self._options.timeline.switched is not None:
            standing = "different"  # it may be the application's: the queue `migrate` finds that out
        if standing == "same" and target_key not in self._begun:
            return CopyResult(Outcome.KEPT)
        record = await self._records.take(target_key, source_key)
        if record is None:
            raise Awaited("UploadBusy", "another batch is at work on the same object")
        copy = await self._describe(Large(source_key, seen, target_key), record)
        if existing is not None and (completed := copy.find_completed(existing)):
            return await self._settle(copy, completed)
        if not may_replace(standing, self._replaces):
            await copy.work.forget()
            return CopyResult(Outcome.KEPT if standing in {"same", "unknown"} else Outcome.CONFLICT)
        upload, plan = await copy.open(self._choose_part(size_of(seen), known if standing == "own" else None))
        sent = {part.number for part in upload.parts}
        missing = [part.number for part in split_range(plan.size_bytes, plan.part_bytes) if part.number not in sent]
        if missing:
            self.wanted[source_key] = Wanted(self._records.production, target_key, upload.id, missing)
            raise Awaited("PartsLeft", f"{count(len(missing), 'part', 'parts')} not sent yet")
        return await self._complete(copy, upload, existing)

    async def _look(self, source_key: str, target_key: str) -> Response | None:
        """Return the headers of the legacy object; None if it is not large, or not any more."""
        try:
            seen = await self._s3.head("legacy", source_key)
        except ObjectNotFound:
            await self._abort_begun(source_key, target_key)
            raise
        if size_of(seen) >= self._settings.least_bytes:
            return seen
        await self._abort_begun(source_key, target_key)
        return None

    async def _abort_begun(self, source_key: str, target_key: str) -> None:
        """Abort the upload that an earlier attempt has begun, unless another batch holds it."""
        record = await self._records.take(target_key, source_key) if target_key in self._begun else None
        if record is not None and await record.end() and record.recorded is not None:
            with suppress(ObjectError):
                await self._s3.send(abort_multipart_upload(target_key, upload_id=record.recorded.upload_id))

    async def _find_known(self, source_key: str, target_key: str) -> KnownCopy | None:
        """Return what is remembered of an earlier copy of this legacy object."""
        known = await self._records.find_copy(target_key)
        is_its = known is not None and (known.legacy, known.legacy_key) == (self._records.legacy, source_key)
        return known if is_its else None

    async def _describe(self, large: Large, record: UploadRecord) -> "_Copy":
        method, properties = self._options.method, self._options.properties
        described = await properties.describe(
            self._s3, large.source_key, large.seen, UPLOAD, keep_class=method.keeps_class
        )
        source = method.part_source(self._s3, large)
        work = LargeCopy(self._s3, large, described.headers, source, record, self._options.large_objects)
        return _Copy(work, described)

    def _choose_part(self, size_bytes: int, known: KnownCopy | None) -> int:
        """Return the size of the parts; those of the copy that is replaced, so that they can be compared."""
        if known is not None and size_bytes <= known.part_bytes * MAX_PARTS:
            return known.part_bytes
        return part_size(size_bytes, self._settings.part_bytes or self._options.method.smallest_parts)

    async def _complete(self, copy: "_Copy", upload: Upload, existing: Response | None) -> CopyResult:
        """Put the object together, in the place of nothing or of the object that was seen, and of no other."""
        mode, own_etag = ("protect", "") if existing is None else ("replace", existing.etag or "")
        guard = WriteGuard(self._s3, self._options.support, upload.large.target_key, mode, own_etag)
        try:
            await complete_upload(self._s3, upload, guard, self._records)
        except ObjectExists:
            await copy.work.abort(upload)
            return CopyResult(Outcome.CONFLICT)
        except ObjectError as error:
            if not upload.may_be_completed and not may_continue(error):
                await copy.work.abort(upload)
            if error.code == "NoSuchUpload":
                raise Awaited("NoSuchUpload", "the server has lost the upload; it begins anew") from error
            raise
        return await self._settle(copy, upload)

    async def _settle(self, copy: "_Copy", upload: Upload) -> CopyResult:
        """See to the properties of an object that is completed, and remember it."""
        key, composite = upload.large.target_key, upload.composite_etag()
        written = await look_at_completed(self._s3, upload.large, None)
        if composite is not None and is_digest(written) and written.etag != composite:
            raise object_changed("production", key)
        await self._options.properties.settle(self._s3, key, copy.described, UPLOAD, written)
        await self._records.end_with_copy(key, upload.id, written.etag or "")
        return CopyResult(Outcome.MIGRATED, etag=written.etag or "")


class _Copy(NamedTuple):
    """One object's upload, and what the object shall be."""

    work: LargeCopy
    described: Description

    def find_completed(self, existing: Response) -> Upload | None:
        """Return the upload that an earlier attempt has completed without noting it; None where there is none."""
        found = self.work.record.recorded
        if found is None or not found.is_of(self.work.plan(found.part_bytes)):
            return None
        upload = self._gather(found)
        is_it = upload.composite_etag() == existing.etag and size_of(existing) == found.size_bytes
        return upload if is_it else None

    async def open(self, part_bytes: int) -> tuple[Upload, Recorded]:
        """Return the upload that is recorded, with its parts, or a new one.

        An upload of another version of the legacy object is aborted, and one that the server has lost is forgotten.
        Raises NotRecorded where it cannot be recorded.
        """
        work = self.work
        plan, found = work.plan(part_bytes), work.record.recorded
        if found is not None:
            upload = self._gather(found)
            if found.is_of(plan) and not await _is_gone(work.s3, upload):
                return upload, found
            await send_abort(work.s3, upload)
        upload, plan = await work.begin(plan)
        if not work.record.stands:
            await work.abort(upload)
            raise NotRecorded("NotRecorded", "PostgreSQL did not record an upload; the next attempt begins it anew")
        return upload, plan

    def _gather(self, found: Recorded) -> Upload:
        """Return an upload with the parts that are recorded of it."""
        etags = self.work.record.parts.items()
        parts = [Part(number, etag, etag if DIGEST.fullmatch(etag) else None) for number, etag in etags]
        return Upload(self.work.large, found.upload_id, self.work.source.checks_digests, sorted(parts))


async def _is_gone(s3: ObjectRequests, upload: Upload) -> bool:
    """Return whether the server says that it does not know an upload."""
    try:
        await s3.send(list_parts(upload.large.target_key, upload_id=upload.id), tries=1)
    except ObjectError as error:
        return error.code == "NoSuchUpload"
    return False
