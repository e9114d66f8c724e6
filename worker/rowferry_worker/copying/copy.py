"""Step 3 of 5: bring one object to its production key, and know what stood there before."""

import logging
import time
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from rowferry.batch import Outcome
from rowferry.errors import Cancelled, ObjectError, ObjectRejected, PreconditionFailed, ServerFault
from rowferry.plan import OnConflict
from rowferry.s3.responses import Response
from rowferry_worker.copying.precedence import NO_TIMELINE, Clocks, Timeline, find_precedence, is_earlier_copy
from rowferry_worker.copying.transfer import CopyMethod, ObjectWrite, PlainCopy, Written
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.objects.compare import Pair, are_same
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport, ObjectExists
from rowferry_worker.objects.intents import Intent, Overwrite, Probe, Protect, Replace, Target
from rowferry_worker.objects.own_copies import KnownCopies
from rowferry_worker.objects.requests import ObjectRequests, object_changed
from rowferry_worker.properties.settle import Properties

_log = logging.getLogger(__name__)

PROBE_BYTES = 1024 * 1024
"""The largest object, as far as its size is known, that is written twice to learn whether a condition is heeded."""


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """How the objects of a batch are copied."""

    method: CopyMethod
    support: ConditionalWriteSupport
    on_conflict: OnConflict = "fail"
    properties: Properties = field(default_factory=Properties)
    looks_first: bool = False
    """Look for each production object before its legacy object is read: nearly all of them are there."""
    timeline: Timeline = NO_TIMELINE
    """When the application was switched, where its rows stay: what it has written to production since is kept."""
    clocks: Clocks = field(default_factory=Clocks)
    """By how much those of the two servers differ."""
    large_objects: LargeObjects = field(default_factory=LargeObjects)
    """What the batch's large objects share."""
    tried_since: float | None = None
    """When the first attempt at the batch began, by time.monotonic(): what it copied may stand in production. None:
    this is the first."""

    @property
    def copies(self) -> KnownCopies:
        """What is remembered of production objects."""
        return self.large_objects.records

    @property
    def plain_copy(self) -> PlainCopy | None:
        """What is equal in all requests, where an object takes one CopyObject under a condition, and nothing before it.

        None: the server is not known to heed the condition, or something has to be looked at, read or noted.
        """
        is_plain = self.support.supported("CopyObject") and self.properties.are_plain
        if not is_plain or self.looks_first or self.timeline.is_doubtful or logs_objects():
            return None
        return self.method.plain_copy

    def transfer(self, s3: ObjectRequests, source_key: str, target_key: str, intent: Intent) -> Awaitable[Written]:
        """Write the production object, as CopyMethod.transfer does."""
        target = Target(s3, self.support, target_key)
        return self.method.transfer(ObjectWrite(source_key, target, intent, self.properties, self.large_objects))


class CopyResult(Struct, frozen=True, gc=False):
    """How a copy ended well: the production object is there (migrated, kept) or a different one is (conflict)."""

    outcome: Outcome
    size_bytes: int = 0
    """Bytes that were written, as far as they are known: a server-side copy does not tell."""
    etag: str = ""
    """Of the production object that was written or found equal, unquoted; empty where it was left as it is, unread."""
    source_etag: str = ""
    """Of the legacy object that it is equal to, unquoted; empty where the server copied it and did not say."""
    seconds: float = 0.0
    """How long its writing took."""
    began: float = 0.0
    """When that began, or the comparison with what was found equal, by time.monotonic()."""
    is_unclear: bool = False
    """Of a conflict: nobody can tell which of the two objects was written last."""
    value: Any = None
    """What a queue has found of the object, for its rows."""


async def copy_object(s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str) -> CopyResult:
    """Copy the legacy object to its production key, unless a different object is there.

    MIGRATED: written now. KEPT: an identical object was there (or any, if `on_conflict` is keep). CONFLICT: a
    different one is there and was left alone; with "older", one that is not known to be older than the legacy object,
    or a copy of ours. Raises ObjectNotFound when there is no legacy object, and any other ObjectError as it comes.
    """
    method, support = options.method, options.support
    is_noted, asked_at = False, time.monotonic()
    try:
        expects_existing = support.expects_existing or options.on_conflict == "keep"
        if options.looks_first or (method.moves_bytes and expects_existing):
            await Protect().check(Target(s3, support, target_key))
        if options.timeline.is_doubtful:
            await options.copies.note_write(target_key, source_key)
            is_noted = True
        began = time.monotonic()
        written = await options.transfer(s3, source_key, target_key, Protect())
    except ObjectExists as found:
        existing = found.response
    except PreconditionFailed as refusal:
        support.expects_existing, asked_at = True, time.monotonic()
        found_now = await s3.find("production", target_key)
        if found_now is None:
            raise ServerFault(refusal.code, "the production object came and went; try again") from refusal
        existing = found_now
    else:
        is_small = written.operation == method.operation and written.size_bytes <= PROBE_BYTES
        if is_small and support.begin_probe(method.operation):
            await _probe_condition(s3, options, source_key, target_key, written.etag)
        return _describe(written, began)
    if is_noted:
        await options.copies.note_write(target_key, source_key, is_pending=False)
    if method.damage.has_left(target_key, existing):
        return await replace_object(s3, options, source_key, target_key, existing)
    return await _resolve_existing(s3, options, source_key, target_key, existing, asked_at=asked_at)


async def overwrite(s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str) -> CopyResult:
    """Write the production object over any that is there: it was asked for."""
    began = time.monotonic()
    written = await options.transfer(s3, source_key, target_key, Overwrite())
    return _describe(written, began)


async def replace_object(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, existing: Response
) -> CopyResult:
    """Write the production object over the one that was seen, and over no other: then raise ServerFault."""
    if options.timeline.is_doubtful:
        await options.copies.note_write(target_key, source_key)
    began = time.monotonic()
    try:
        written = await options.transfer(s3, source_key, target_key, Replace(existing.etag or ""))
    except PreconditionFailed as refusal:
        if options.timeline.is_doubtful:
            await options.copies.note_write(target_key, source_key, is_pending=False)
        raise object_changed("production", target_key) from refusal
    return _describe(written, began)


def _describe(written: Written, began: float) -> CopyResult:
    seconds = time.monotonic() - began
    return CopyResult(Outcome.MIGRATED, written.size_bytes, written.etag, written.source_etag, seconds, began)


async def _resolve_existing(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, existing: Response, *, asked_at: float
) -> CopyResult:
    """Return what to make of an object that is at the production key already; `asked_at`: before its headers came."""
    if options.on_conflict == "keep":
        return CopyResult(Outcome.KEPT)
    began = time.monotonic()
    legacy = await s3.head("legacy", source_key)
    replaces = options.on_conflict == "overwrite" and not options.properties.are_encrypted(existing)
    pair = Pair(source_key, legacy, target_key, existing)
    if not replaces and await are_same(s3, pair, options.copies):
        has_switched = options.timeline.switched is not None
        options.properties.note_kept(legacy, target_key, existing)
        await options.properties.mend(s3, source_key, legacy, target_key, existing, with_acl=not has_switched)
        return CopyResult(Outcome.KEPT, etag=existing.etag or "", source_etag=legacy.etag or "", began=began)
    if options.on_conflict == "overwrite":
        return await overwrite(s3, options, source_key, target_key)
    return await _resolve_difference(s3, options, pair, asked_at)


async def _resolve_difference(s3: ObjectRequests, options: CopyOptions, pair: Pair, asked_at: float) -> CopyResult:
    """Return what to make of a production object that differs, and is replaced only where it is ours or older."""
    if options.on_conflict == "older":
        precedence = await find_precedence(s3, pair, options.copies, options.clocks, options.timeline)
    else:
        is_ours = await options.copies.is_own_copy(pair.production_key, pair.production.etag or "")
        tried_for = None if options.tried_since is None else asked_at - options.tried_since
        is_ours = is_ours or await is_earlier_copy(s3, pair, options.clocks, tried_for)
        precedence = "legacy" if is_ours else "production"
    if precedence == "legacy":
        return await replace_object(s3, options, pair.legacy_key, pair.production_key, pair.production)
    if precedence == "application":
        return CopyResult(Outcome.KEPT)
    return CopyResult(Outcome.CONFLICT, is_unclear=precedence == "unclear")


async def _probe_condition(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, etag: str
) -> None:
    """Write the object that was just written once more, under the condition, and note what the server does.

    `etag` is that object's: another that has taken its place meanwhile is left alone.
    """
    supported = None
    try:
        await options.transfer(s3, source_key, target_key, Probe(etag))
        supported = False
    except Cancelled:
        raise
    except PreconditionFailed as refusal:
        # A 409 or a 304 may have other reasons.
        supported = True if refusal.code in {"PreconditionFailed", "HTTP 412"} else None
    except ObjectRejected:
        supported = False
    except ObjectError:
        pass  # the object itself is copied already; another one may find out
    finally:
        options.support.note(options.method.operation, supported)


def log_copy(
    copy: Coroutine[Any, Any, CopyResult], source_key: str, target_key: str
) -> Coroutine[Any, Any, CopyResult]:
    """Return the copy; with `--verbose` it logs its outcome and the time it took."""
    return _log_outcome(copy, source_key, target_key) if logs_objects() else copy


def logs_objects() -> bool:
    """Return whether each object is logged: `--verbose`."""
    return _log.isEnabledFor(logging.DEBUG)


async def _log_outcome(copy: Coroutine[Any, Any, CopyResult], source_key: str, target_key: str) -> CopyResult:
    started = time.monotonic()
    result = await copy
    fields = {"old_key": source_key, "new_key": target_key, "outcome": str(result.outcome)}
    _log.debug("object copied", extra={**fields, "ms": f"{(time.monotonic() - started) * 1000:.1f}"})
    return result
