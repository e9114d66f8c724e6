"""A batch of parts: send those that are missing, each recorded as soon as the server has confirmed it."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import call
from rowferry.errors import NotStarted, ObjectError
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.objects import is_missing
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.multipart.completion import Large
from rowferry_worker.multipart.copied_parts import KnownParts, UpdatedParts, list_comparable
from rowferry_worker.multipart.part_width import PartWidth
from rowferry_worker.multipart.records import UploadRecords
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.multipart.streamed_parts import PartSource
from rowferry_worker.objects.requests import ObjectRequests, object_changed, size_of
from rowferry_worker.scheduling.scheduler import ObjectResult

AT_ONCE_SECONDS = 1.0
"""A turn that comes sooner has cost its batch no time budget to speak of."""


class PartGate:
    """Lets parts of all batches of a process through, in the order in which they came; event loop only."""

    def __init__(self) -> None:
        """Begin with as many at a time as those of an object that one batch sends."""
        self._width = PartWidth(time.monotonic())
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._part_seconds = 0.0
        """What the last part took: the next would end after the time budget."""

    @asynccontextmanager
    async def passing(self, size_bytes: int, deadline: float, *, has_begun: Callable[[], bool]) -> AsyncGenerator[None]:
        """Hold a place while a part is sent. Raises NotStarted where it would end after the deadline of its batch.

        `has_begun`: whether its batch has sent another. The first of a batch is not too late where its turn comes at
        once: so each batch comes to its end, even if a part takes longer than the time budget.
        """
        asked = time.monotonic()
        await self._wait(deadline)
        started = self._width.begin(time.monotonic())
        sent_bytes = 0
        try:
            is_late = started + self._part_seconds >= deadline
            if is_late and (has_begun() or started - asked > AT_ONCE_SECONDS):
                raise NotStarted("NotStarted", "its turn did not come")
            yield
            self._part_seconds, sent_bytes = time.monotonic() - started, size_bytes
        finally:
            self._width.end(started, time.monotonic(), sent_bytes)
            self._under_way -= 1
            self._let_through()

    async def _wait(self, deadline: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._let_through()
        seconds = deadline - time.monotonic()
        try:
            await asyncio.wait_for(turn, None if seconds == float("inf") else max(0.0, seconds))
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():
                self._under_way -= 1
                self._let_through()
            if isinstance(error, TimeoutError):
                raise NotStarted("NotStarted", "its turn did not come") from None
            raise

    def _let_through(self) -> None:
        while self._waiting and self._under_way < self._width.value:
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)


def send_parts(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Send the parts that are not recorded; return one result for each of them."""
    upload = context.batch.payload["upload"]
    found = call(context.connection, "find_upload", upload["production"], upload["key"], upload["id"])
    if not found:
        return [_end(entry) for entry in entries]
    recorded = {str(number) for number in found[0]["recorded"]}
    missing = [entry for entry in entries if entry.id not in recorded]
    s3, records = context.object_requests(), context.large_objects().records
    plan, method = context.migration.plan, context.migration.copy_options("fail").method
    sender = PartsOfUpload(
        s3, records, method, plan.production.bucket, upload, found[0], context.deadline, _share_gate()
    )
    by_id = run_copies(context, sender.send, [entry.id for entry in missing])
    started = context.leave_unstarted(missing, lambda entry: not isinstance(by_id[entry.id], NotStarted))
    kept = [EntryResult(entry, Outcome.KEPT) for entry in entries if entry.id in recorded]
    return kept + [judge_part(entry, by_id[entry.id]) for entry in started]


@cache
def _share_gate() -> PartGate:
    """Return the gate of this process."""
    return PartGate()


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
class PartsOfUpload:
    """The parts of one upload that an attempt sends; on the event loop only."""

    s3: ObjectRequests
    records: UploadRecords
    method: CopyMethod
    bucket: str
    """The production bucket."""
    upload: Mapping[str, str]
    """The upload, as the payload names it."""
    recorded: Mapping[str, Any]
    """What `rowferry.find_upload` tells of it."""
    deadline: float
    """End of the batch's time budget, by time.monotonic()."""
    gate: PartGate
    _has_begun: bool = False
    _source: PartSource | None = None
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def send(self, entry_id: str) -> CopyResult:
        """Send the part of this number. MIGRATED: sent; KEPT: unchanged, so it was copied in place.

        Raises ServerFault with the code ObjectChanged where the legacy object is another now, NoSuchUpload where the
        upload has ended.
        """
        source, part = await self._open(), self._find_range(int(entry_id))
        async with self.gate.passing(part.size_bytes, self.deadline, has_begun=lambda: self._has_begun):
            self._has_begun = True
            sent = await source.send(self.upload["id"], part)
        stands = await self.records.add_part(self.upload["key"], self.upload["id"], *sent)
        if not stands:
            raise ObjectError("NoSuchUpload", "its record is gone")
        if isinstance(source, UpdatedParts) and part.number in source.unchanged:
            return CopyResult(Outcome.KEPT)
        return CopyResult(Outcome.MIGRATED, part.size_bytes)

    def _find_range(self, number: int) -> PartRange:
        size_bytes, part_bytes = self.recorded["size_bytes"], self.recorded["part_bytes"]
        first = (number - 1) * part_bytes
        return PartRange(number, first, min(first + part_bytes, size_bytes) - 1)

    async def _open(self) -> PartSource:
        """Return what brings the parts; look at the legacy object, and at the copy to replace, before the first one."""
        async with self._opening:
            if self._source is None:
                source_key = self.recorded["legacy_key"]
                seen = await self.s3.head("legacy", source_key)
                if (seen.etag, size_of(seen)) != (self.recorded["source_etag"], self.recorded["size_bytes"]):
                    raise object_changed("legacy", source_key)
                large = Large(source_key, seen, self.upload["key"])
                self._source = self.method.part_source(self.s3, large, await self._find_known())
            return self._source

    async def _find_known(self) -> KnownParts | None:
        """Return what is known of the copy that the upload replaces, if that is still as it was left."""
        if self.recorded["old_digests"] is None or not self.method.moves_bytes:
            return None
        existing = await self.s3.find("production", self.upload["key"])
        if existing is None or existing.etag != self.recorded["old_etag"]:
            return None
        sizes = self.recorded["old_size_bytes"], self.recorded["size_bytes"], self.recorded["part_bytes"]
        return KnownParts(self.bucket, self.recorded["old_etag"], list_comparable(self.recorded["old_digests"], *sizes))
