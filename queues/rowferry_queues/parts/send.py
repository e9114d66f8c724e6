"""A batch of parts: send those that are missing, each recorded as soon as the server has confirmed it."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rowferry.batch import Entry, EntryResult, Outcome, Performed
from rowferry.db.connection import call
from rowferry.errors import NotFinished, NotRecorded, NotStarted, ObjectError, ObjectRejected
from rowferry_queues.parts.updated_parts import KnownParts, list_comparable, send_if_changed
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.objects import is_missing
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.multipart.completion import Large, Part
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.part_size import split_range
from rowferry_worker.multipart.side_by_side import PartRange, PartSender
from rowferry_worker.multipart.streamed_parts import PartSource, StreamedParts
from rowferry_worker.objects.requests import ObjectRequests, object_changed, size_of
from rowferry_worker.scheduling.copy_run import ObjectResult


def send_parts(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Send the parts that are not recorded."""
    upload = context.batch.payload["upload"]
    listed = call(context.connection, "list_uploads", context.batch.id, upload["production"], [upload["key"]])
    found = [row for row in listed if row["upload_id"] == upload["id"]]
    if not found:
        return Performed([_end(entry) for entry in entries])
    recorded = {*found[0]["recorded"]}
    missing = {int(entry.id): entry for entry in entries if int(entry.id) not in recorded}
    large_objects = context.large_objects()
    method, bucket = context.migration.copying.method, context.migration.plan.production.bucket
    parts = SharedParts(context.object_requests(), large_objects, method, bucket, upload, found[0])
    ended = run_copies(context, lambda _: parts.send_all(missing), [upload["key"]] if missing else [])
    by_number = {number: parts.ends.get(number, ended[upload["key"]]) for number in missing}
    first = next((number for number in missing if isinstance(by_number[number], NotStarted)), None)
    begun = [*missing] if first is None else [number for number in missing if number < first]
    kept = [EntryResult(entry, Outcome.KEPT) for entry in entries if int(entry.id) in recorded]
    sent = [judge_part(missing[number], by_number[number]) for number in begun]
    return Performed(kept + sent, [entry for number, entry in missing.items() if number not in begun])


def judge_part(entry: Entry, result: ObjectResult) -> EntryResult:
    """Return the outcome of one part; of an upload that has ended, or whose object is another now, none is due."""
    if isinstance(result, CopyResult):
        return EntryResult(entry, result.outcome, result.size_bytes)
    if result.code == "NoSuchUpload":
        return _end(entry)
    if is_missing(result):
        return EntryResult(entry, Outcome.CHANGED, reason="object gone", error=f"there is no legacy object: {result}")
    if result.code == "ObjectChanged":
        return EntryResult(entry, Outcome.CHANGED, reason="object rewritten", error=str(result))
    return EntryResult.from_error(entry, result)


def _end(entry: Entry) -> EntryResult:
    words = "its upload was completed, aborted, or begun anew"
    return EntryResult(entry, Outcome.DELETED, reason="upload ended", error=words)


@dataclass(slots=True)
class SharedParts:
    """The parts of one upload that an attempt sends; on the event loop only."""

    s3: ObjectRequests
    large_objects: LargeObjects
    method: CopyMethod
    bucket: str
    """The production bucket."""
    upload: Mapping[str, str]
    """The upload, as the payload names it."""
    recorded: Mapping[str, Any]
    """What `rowferry.list_uploads` tells of it."""
    ends: dict[int, ObjectResult] = field(default_factory=dict[int, ObjectResult])
    """By number, how the sending of a part ended, unless it ended that of all."""

    async def send_all(self, numbers: Container[int]) -> CopyResult:
        """Send the parts of these numbers side by side.

        Raises NotFinished where the time budget ends before, ServerFault with the code ObjectChanged where the legacy
        object is another now, NoSuchUpload where the upload has ended, and what else concerns more than one part.
        """
        source, known = await self._open()
        ranges = split_range(self.recorded["size_bytes"], self.recorded["part_bytes"])
        missing = [part for part in ranges if part.number in numbers]
        sender = PartSender(partial(self._send, source, known), missing, self.large_objects, may_stop=True)
        if not await sender.send_all():
            raise NotFinished("NotFinished", "its turn did not come")
        return CopyResult(Outcome.MIGRATED)

    async def _send(self, source: PartSource, known: KnownParts | None, part: PartRange) -> Part:
        try:
            if known is not None and isinstance(source, StreamedParts):
                sent, is_unchanged = await send_if_changed(self.s3, source, known, self.upload["id"], part)
            else:
                sent, is_unchanged = await source.send(self.upload["id"], part), False
        except ObjectRejected as error:
            self.ends[part.number] = error
            return Part(part.number, "", None)
        etags = {part.number: sent.etag}
        is_recorded = await self.large_objects.records.add_parts(self.upload["key"], self.upload["id"], etags)
        if is_recorded is None:
            raise NotRecorded("NotRecorded", "PostgreSQL did not record a part; the next attempt sends it again")
        if not is_recorded:
            raise ObjectError("NoSuchUpload", "its record is gone")
        migrated = CopyResult(Outcome.MIGRATED, part.size_bytes)
        self.ends[part.number] = CopyResult(Outcome.KEPT) if is_unchanged else migrated
        return sent

    async def _open(self) -> tuple[PartSource, KnownParts | None]:
        """Return what brings the parts, after a look at the legacy object, and what is known of the copy to replace."""
        key, source_key = self.upload["key"], self.recorded["legacy_key"]
        seen = await self.s3.head("legacy", source_key)
        if (seen.etag, size_of(seen)) != (self.recorded["source_etag"], self.recorded["size_bytes"]):
            raise object_changed("legacy", source_key)
        source = self.method.part_source(self.s3, Large(source_key, seen, key))
        known = await self._find_known(source_key, key) if isinstance(source, StreamedParts) else None
        return source, known

    async def _find_known(self, source_key: str, key: str) -> KnownParts | None:
        """Return what is known of the copy that the upload replaces, if that is still as it was left."""
        copy = await self.large_objects.records.find_copy_of(source_key, key)
        if copy is None or copy.digests is None or copy.part_bytes != self.recorded["part_bytes"]:
            return None
        existing = await self.s3.find("production", key)
        if existing is None or existing.etag != copy.etag:
            return None
        sizes = copy.size_bytes, self.recorded["size_bytes"], copy.part_bytes
        return KnownParts(self.bucket, key, copy.etag, list_comparable(copy.digests, *sizes))
