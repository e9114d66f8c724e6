"""A batch of parts: send those that are missing; what an earlier pass has copied, and has not changed, in place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from rowferry.batch import Entry, EntryResult, Outcome, Performed
from rowferry.db.connection import call
from rowferry.errors import NotRecorded, NotStarted, ObjectError
from rowferry.s3.operations import upload_part_copy
from rowferry.s3.results import read_copied_etag
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.objects import is_missing
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.migration import MigrationContext
from rowferry_worker.multipart.completion import Large, Part
from rowferry_worker.multipart.part_size import split_range
from rowferry_worker.multipart.records import UploadRecords
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.multipart.streamed_parts import PartSource, StreamedParts
from rowferry_worker.objects.compare import is_encrypted
from rowferry_worker.objects.digests import hash_body
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed, size_of
from rowferry_worker.scheduling.copy_run import ObjectResult


def send_parts(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Send the parts that are not recorded."""
    upload: dict[str, str] = context.batch.payload["upload"]
    listed = call(context.connection, "list_uploads", context.batch.id, upload["production"], [upload["key"]])
    recorded = next((row for row in listed if row["upload_id"] == upload["id"]), None)
    if recorded is None:
        return Performed([_end(entry) for entry in entries])
    kept = [EntryResult(entry, Outcome.KEPT) for entry in entries if int(entry.id) in recorded["recorded"]]
    missing = [entry for entry in entries if int(entry.id) not in recorded["recorded"]]
    parts = SharedParts(context.migration, context.object_requests(), context.large_objects().records, upload, recorded)
    numbers, source_key = [entry.id for entry in missing], str(recorded["legacy_key"])
    opened = run_copies(context, parts.open, [source_key] if missing else [], is_look=True)
    if all(isinstance(each, CopyResult) for each in opened.values()):
        targets, sources = dict.fromkeys(numbers, upload["key"]), dict.fromkeys(numbers, source_key)
        ranges = {str(part.number): part for part in split_range(recorded["size_bytes"], recorded["part_bytes"])}
        ended = run_copies(context, lambda each: parts.send(ranges[each]), numbers, targets=targets, sources=sources)
    else:
        ended = dict.fromkeys(numbers, opened[source_key])
    begun = [*takewhile(lambda entry: not isinstance(ended[entry.id], NotStarted), missing)]
    return Performed(kept + [judge_part(each, ended[each.id]) for each in begun], missing[len(begun) :])


def judge_part(entry: Entry, result: ObjectResult) -> EntryResult:
    """Return the outcome of one part; of an upload that has ended, or whose object is another now, none is due."""
    if isinstance(result, CopyResult):
        return EntryResult(entry, result.outcome, result.size_bytes)
    is_over = result.code in {"NoSuchUpload", "ObjectChanged"} or is_missing(result)
    return _end(entry) if is_over else EntryResult.from_error(entry, result)


def _end(entry: Entry) -> EntryResult:
    words = "its upload was completed, aborted, or begun anew, or its legacy object is another now"
    return EntryResult(entry, Outcome.CHANGED, reason="upload ended", error=words)


def list_comparable(digests: bytes, old_bytes: int, new_bytes: int, part_bytes: int) -> dict[int, str]:
    """Return the digests of an object's parts, by number, that have the same range in an object of `new_bytes`.

    `digests`: 16 bytes a part, in the order of the parts. The last part of the shorter object has another range, unless
    it is a whole part or the sizes are equal: S3 knows no part that is copied from less than its own range.
    """
    shared = min(old_bytes, new_bytes) // part_bytes if old_bytes != new_bytes else -(-old_bytes // part_bytes)
    return {
        number + 1: digests[16 * number : 16 * (number + 1)].hex() for number in range(min(shared, len(digests) // 16))
    }


@dataclass(slots=True)
class SharedParts:
    """The parts of one upload that an attempt sends; on the event loop only."""

    migration: MigrationContext
    s3: ObjectRequests
    records: UploadRecords
    upload: Mapping[str, str]
    """The upload, as the payload names it."""
    recorded: Mapping[str, Any]
    """What `rowferry.list_uploads` tells of it."""
    _source: PartSource | None = None
    _replaced_etag: str = ""
    """Of the copy that an earlier pass has left."""
    _known: Mapping[int, str] = field(default_factory=dict[int, str])
    """The MD5, in hexadecimal, by number, of each of its parts that has the same range in both objects."""

    async def send(self, part: PartRange) -> CopyResult:
        """Send a part and record it; KEPT: it was copied in place.

        Raises ServerFault with the code ObjectChanged where the legacy object is another now, NoSuchUpload where the
        upload has ended.
        """
        assert self._source is not None, "it was opened"
        sent, is_unchanged = await self._send(self._source, part)
        is_recorded = await self.records.add_parts(self.upload["key"], self.upload["id"], {part.number: sent.etag})
        if is_recorded is None:
            raise NotRecorded("NotRecorded", "PostgreSQL did not record a part; the next attempt sends it again")
        if not is_recorded:
            raise ObjectError("NoSuchUpload", "its record is gone")
        return CopyResult(Outcome.KEPT) if is_unchanged else CopyResult(Outcome.MIGRATED, part.size_bytes)

    async def open(self, source_key: str) -> CopyResult:
        """Find out what brings the parts, after a look at the legacy object."""
        key = self.upload["key"]
        size_bytes, part_bytes = self.recorded["size_bytes"], self.recorded["part_bytes"]
        seen = await self.s3.head("legacy", source_key)
        if (seen.etag, size_of(seen)) != (self.recorded["source_etag"], size_bytes):
            raise object_changed("legacy", source_key)
        copy = await self.records.find_copy_of(source_key, key)
        if copy is not None and copy.digests is not None and copy.part_bytes == part_bytes:
            self._replaced_etag = copy.etag
            self._known = list_comparable(copy.digests, copy.size_bytes, size_bytes, part_bytes)
        self._source = self.migration.copying.method.part_source(self.s3, Large(source_key, seen, key))
        self._source.skip_whole()  # other batches send parts as well
        return CopyResult(Outcome.KEPT)

    async def _send(self, source: PartSource, part: PartRange) -> tuple[Part, bool]:
        """Send a part, or have it copied in place where its MD5 is that of an earlier pass; return whether it was.

        A part that is not known is passed on while it is read, as those of a first copy.
        """
        if part.number not in self._known or not isinstance(source, StreamedParts):
            return await source.send(self.upload["id"], part), False
        with await source.bodies.hold(part.size_bytes):
            body = await source.read(part.first, part.last)
            digest = await hash_body(body)
            copied = await self._copy_in_place(part, digest) if digest == self._known[part.number] else None
            return copied or await source.send_body(self.upload["id"], part, body, digest), copied is not None

    async def _copy_in_place(self, part: PartRange, digest: str) -> Part | None:
        """Have an unchanged part copied from the object that is to be replaced; None where it must be sent.

        The server has to tell the MD5 of what it has copied: a promise to heed the condition is not enough.
        """
        request = upload_part_copy(
            self.upload["key"],
            source_bucket=self.migration.plan.production.bucket,
            source_key=self.upload["key"],
            source_etag=self._replaced_etag,
            first_byte=part.first,
            last_byte=part.last,
            upload_id=self.upload["id"],
            part_number=part.number,
        )
        try:
            response = await self.s3.send(request)
            etag = demand(read_copied_etag, response, request)
        except ObjectError as error:
            if error.code == "NoSuchUpload":
                raise
            return None  # what concerns more than this request, the part itself meets as well
        return Part(part.number, etag, etag) if etag == digest and not is_encrypted(response) else None
