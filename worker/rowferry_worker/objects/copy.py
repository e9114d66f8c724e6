"""Step 3 of 5: bring one object to its production key, and know what stood there before."""

import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Struct

from rowferry.batch import Outcome
from rowferry.errors import Cancelled, ObjectError, ObjectRejected, PreconditionFailed, ServerFault
from rowferry.plan import OnConflict
from rowferry.s3.responses import Response
from rowferry_worker.objects.compare import are_same, is_newer, is_own_work
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport, ObjectExists, WriteGuard
from rowferry_worker.objects.properties import Properties
from rowferry_worker.objects.requests import ObjectRequests, object_changed
from rowferry_worker.objects.transfer import CopyMethod

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
    switched_at: datetime | None = None
    """With "older": a production object that differs and was written since is the application's own, and is kept."""


class CopyResult(Struct, frozen=True, gc=False):
    """How a copy ended well: the production object is there (migrated, kept) or a different one is (conflict)."""

    outcome: Outcome
    size_bytes: int = 0
    """Bytes that were written, as far as they are known: a server-side copy does not tell."""
    etag: str = ""
    """Of what was written, unquoted; empty for what went by parts, and where nothing was written."""
    value: Any = None
    """What a queue has found of the object, for its rows."""


async def copy_object(s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str) -> CopyResult:
    """Copy the legacy object to its production key, unless a different object is there.

    MIGRATED: written now. KEPT: an identical object was there (or any, if `on_conflict` is keep). CONFLICT: a
    different one is there and was left alone; with "older", one that was written in the same second as the legacy
    object, or later. Raises ObjectNotFound when there is no legacy object, and any other ObjectError as it comes.
    """
    method, support = options.method, options.support
    guard = WriteGuard(s3, support, target_key)
    try:
        expects_existing = support.expects_existing or options.on_conflict == "keep"
        if options.looks_first or (method.moves_bytes and expects_existing):
            await guard.look_early()
        written = await method.transfer(s3, source_key, target_key, guard, options.properties)
    except ObjectExists as found:
        existing = found.response
    except PreconditionFailed as refusal:
        support.expects_existing = True
        found_now = await s3.find("production", target_key)
        if found_now is None:
            raise ServerFault(refusal.code, "the production object came and went; try again") from refusal
        existing = found_now
    else:
        is_small = written.operation == method.operation and written.size_bytes <= PROBE_BYTES
        if is_small and support.begin_probe(method.operation):
            await _probe_condition(s3, options, source_key, target_key, written.etag)
        return CopyResult(Outcome.MIGRATED, written.size_bytes, written.etag)
    if method.damage.has_left(target_key, existing):
        return await replace_object(s3, options, source_key, target_key, existing)
    return await _resolve_existing(s3, options, source_key, target_key, existing)


async def overwrite(s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str) -> CopyResult:
    """Write the production object over any that is there: it was asked for."""
    guard = WriteGuard(s3, options.support, target_key, "overwrite")
    written = await options.method.transfer(s3, source_key, target_key, guard, options.properties)
    return CopyResult(Outcome.MIGRATED, written.size_bytes, written.etag)


async def replace_object(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, existing: Response
) -> CopyResult:
    """Write the production object over the one that was seen, and over no other: then raise ServerFault."""
    guard = WriteGuard(s3, options.support, target_key, "replace", existing.etag or "")
    try:
        written = await options.method.transfer(s3, source_key, target_key, guard, options.properties)
    except PreconditionFailed as refusal:
        raise object_changed("production", target_key) from refusal
    return CopyResult(Outcome.MIGRATED, written.size_bytes, written.etag)


async def _resolve_existing(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, existing: Response
) -> CopyResult:
    """Return what to make of an object that is at the production key already."""
    if options.on_conflict == "keep":
        return CopyResult(Outcome.KEPT)
    legacy = await s3.head("legacy", source_key)
    replaces = options.on_conflict == "overwrite" and not options.properties.are_encrypted(existing)
    if not replaces and await are_same(s3, source_key, legacy, target_key, existing):
        has_switched = options.switched_at is not None
        await options.properties.mend(s3, source_key, legacy, target_key, existing, with_acl=not has_switched)
        return CopyResult(Outcome.KEPT)
    if options.on_conflict == "overwrite":
        return await overwrite(s3, options, source_key, target_key)
    if options.on_conflict == "older" and is_newer(legacy, existing):
        return await replace_object(s3, options, source_key, target_key, existing)
    if options.on_conflict == "older" and is_own_work(legacy, existing, options.switched_at):
        return CopyResult(Outcome.KEPT)
    return CopyResult(Outcome.CONFLICT)


async def _probe_condition(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, etag: str
) -> None:
    """Write the object that was just written once more, under the condition, and note what the server does.

    `etag` is that object's: another that has taken its place meanwhile is left alone.
    """
    supported = None
    guard = WriteGuard(s3, options.support, target_key, "probe", etag)
    try:
        await options.method.transfer(s3, source_key, target_key, guard, options.properties)
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
    return _log_outcome(copy, source_key, target_key) if _log.isEnabledFor(logging.DEBUG) else copy


async def _log_outcome(copy: Coroutine[Any, Any, CopyResult], source_key: str, target_key: str) -> CopyResult:
    started = time.monotonic()
    result = await copy
    fields = {"old_key": source_key, "new_key": target_key, "outcome": str(result.outcome)}
    _log.debug("object copied", extra={**fields, "ms": f"{(time.monotonic() - started) * 1000:.1f}"})
    return result
