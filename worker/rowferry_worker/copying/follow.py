"""An object that is rewritten while it is copied: looked at once more, and copied again."""

import logging

from msgspec.structs import replace

from rowferry.batch import Outcome
from rowferry.errors import ObjectNotFound, ServerFault
from rowferry.s3.clocks import UPLOAD_SPAN, written_at
from rowferry.s3.responses import Response
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object, replace_object
from rowferry_worker.objects.compare import Pair, are_same, compare_headers, is_digest
from rowferry_worker.objects.own_copies import KnownCopies
from rowferry_worker.objects.requests import ObjectRequests, object_changed

_log = logging.getLogger(__name__)


async def copy_standing(s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str) -> CopyResult:
    """Copy an object as `copy_object` does of which no row moves; where only the production bucket has it, it is KEPT.

    Where its age might not tell later on, what was written is remembered as a copy.
    """
    try:
        result = await copy_object(s3, options, source_key, target_key)
    except ObjectNotFound:
        if await s3.find("production", target_key) is None:
            raise
        return CopyResult(Outcome.KEPT)
    await _note(options, source_key, target_key, result)
    return result


async def follow(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, result: CopyResult, *, may_copy: bool
) -> CopyResult:
    """Return the result of a copy, the very same where the legacy object is still what was copied or is gone.

    Else it is copied again, over the copy of before and over nothing else, and the result is another. Without
    `may_copy` it was copied again often enough: then raises ServerFault, and the last copy is remembered as ours.
    Raises ServerFault as well where the copy is no longer ours.
    """
    legacy = await s3.find("legacy", source_key)
    if legacy is None:
        _log.warning("an object was deleted while it was copied; its copy stays", extra={"new_key": target_key})
        return result
    if await _is_current(s3, options.copies, (source_key, target_key), legacy, result):
        return result
    if not may_copy:
        await options.copies.note_copy(target_key, result.etag, source_key, result.source_etag)
        words = f"the legacy object {source_key!r} is rewritten faster than it can be copied; it is copied again later"
        raise ServerFault("ObjectRewritten", words)
    existing = await s3.find("production", target_key)
    if existing is None or existing.etag != result.etag:
        raise object_changed("production", target_key)
    try:
        again = await replace_object(s3, options, source_key, target_key, existing)
    except ObjectNotFound as error:
        if error.side == "production":
            raise
        return result  # the application has deleted it since
    await _note(options, source_key, target_key, again)
    size_bytes = result.size_bytes + again.size_bytes
    return replace(again, size_bytes=size_bytes)


async def _note(options: CopyOptions, source_key: str, target_key: str, result: CopyResult) -> None:
    if options.timeline.is_doubtful and result.outcome is Outcome.MIGRATED:
        await options.copies.note_copy(target_key, result.etag, source_key, result.source_etag)


async def _is_current(
    s3: ObjectRequests, copies: KnownCopies, keys: tuple[str, str], legacy: Response, result: CopyResult
) -> bool:
    """Return whether the legacy object, whose headers are given, is what was copied to the second key."""
    source_key, target_key = keys
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
    span += result.seconds + 1  # the copy may have begun so long before it was there
    if times[0] is not None and times[1] is not None and (times[1] - times[0]).total_seconds() > span:
        return True
    return await are_same(s3, Pair(source_key, legacy, target_key, existing), copies)
