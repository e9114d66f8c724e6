"""What is copied is looked at again: a legacy object that was rewritten meanwhile is copied once more."""

import logging

from rowferry.batch import Outcome
from rowferry.errors import ObjectNotFound, ServerFault
from rowferry.s3.clocks import UPLOAD_SPAN, written_at
from rowferry.s3.responses import Response
from rowferry_worker.objects.compare import are_same, compare_headers, is_digest
from rowferry_worker.objects.copy import CopyOptions, CopyResult, copy_object, replace_object
from rowferry_worker.objects.requests import ObjectRequests, object_changed

_log = logging.getLogger(__name__)

FOLLOWED = 3
"""How often one attempt copies a legacy object again that is rewritten again and again."""


async def copy_standing(s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str) -> CopyResult:
    """Copy an object as `copy_object` does of which no row moves; where only the production bucket has it, it is KEPT.

    From the second pass on, and where its age might not tell, what was written is remembered as a copy.
    """
    try:
        result = await copy_object(s3, options, source_key, target_key)
    except ObjectNotFound:
        if await s3.find("production", target_key) is None:
            raise
        return CopyResult(Outcome.KEPT)
    await _note(s3, options, source_key, target_key, result)
    return result


async def follow(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, result: CopyResult
) -> CopyResult:
    """Return the result of a copy once the legacy object is still what was copied, having copied it again if need be.

    A legacy object that is gone leaves the result as it is. Raises ServerFault where the object was rewritten FOLLOWED
    times meanwhile (then its last copy is remembered as ours), or where the copy is no longer ours.
    """
    size_bytes = 0
    for times in range(FOLLOWED + 1):
        legacy = await s3.find("legacy", source_key)
        if legacy is None:
            _log.warning("an object was deleted while it was copied; its copy stays", extra={"new_key": target_key})
            return _count(result, size_bytes)
        if await _is_current(s3, source_key, legacy, target_key, result):
            return _count(result, size_bytes)
        if times == FOLLOWED:
            break
        result = await _copy_again(s3, options, source_key, target_key, result)
        size_bytes += result.size_bytes
        await _note(s3, options, source_key, target_key, result)
    await s3.large.note_copy(target_key, result.etag, source_key, result.source_etag)
    raise _rewritten(source_key)


async def _copy_again(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, result: CopyResult
) -> CopyResult:
    """Copy a rewritten object over the copy of before, and over nothing else."""
    existing = await s3.find("production", target_key)
    if existing is None or existing.etag != result.etag:
        raise object_changed("production", target_key)
    try:
        return await replace_object(s3, options, source_key, target_key, existing)
    except ObjectNotFound:  # the application has deleted it since
        return result


def _count(result: CopyResult, size_bytes: int) -> CopyResult:
    """Return the result with the bytes of all that was written."""
    if not size_bytes:
        return result
    return CopyResult(Outcome.MIGRATED, size_bytes, result.etag, result.source_etag)


async def _note(s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, result: CopyResult) -> None:
    if (options.looks_first or options.timeline.is_doubtful) and result.outcome is Outcome.MIGRATED:
        await s3.large.note_copy(target_key, result.etag, source_key, result.source_etag)


async def _is_current(
    s3: ObjectRequests, source_key: str, legacy: Response, target_key: str, result: CopyResult
) -> bool:
    """Return whether the legacy object, whose headers are given, is what was copied."""
    if result.source_etag:
        return legacy.etag == result.source_etag
    if is_digest(legacy) and legacy.etag == result.etag:
        return True
    # The server copied it and did not say what: both objects are of one server, so of one clock.
    existing = await s3.find("production", target_key)
    if existing is None or existing.etag != result.etag:
        raise object_changed("production", target_key)
    same = compare_headers(legacy, existing)
    if same is not None:
        return same
    times = written_at(legacy), written_at(existing)
    span = UPLOAD_SPAN if "-" in (legacy.etag or "") else 0.0
    if times[0] is not None and times[1] is not None and (times[1] - times[0]).total_seconds() > span:
        return True
    return await are_same(s3, source_key, legacy, target_key, existing)


def _rewritten(key: str) -> ServerFault:
    words = f"the legacy object {key!r} is rewritten faster than it can be copied; it is copied again later"
    return ServerFault("ObjectRewritten", words)
