"""The copies of objects of which no row moves: the application goes on with the legacy objects, and may be switched."""

import time
from datetime import timedelta

from rowferry.batch import Outcome
from rowferry.errors import ObjectNotFound
from rowferry_worker.objects.compare import are_same
from rowferry_worker.objects.copy import CopyOptions, CopyResult, copy_object, replace_object
from rowferry_worker.objects.requests import ObjectRequests

SLOW = timedelta(seconds=1)
"""A copy that took so long may have been overtaken: Last-Modified counts seconds."""
FOLLOWED = 3
"""How often one attempt follows a legacy object that is replaced again and again."""


async def copy_repeatedly(s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str) -> CopyResult:
    """Copy an object as `copy_object` does; where only the production bucket has it, it is KEPT.

    A legacy object that is replaced while it is copied would look older than its copy, so it is looked at again after a
    slow copy, and in later passes.
    """
    began = time.monotonic()
    try:
        result = await copy_object(s3, options, source_key, target_key)
    except ObjectNotFound:
        if await s3.find("production", target_key) is None:
            raise
        return CopyResult(Outcome.KEPT)
    is_slow = time.monotonic() - began >= SLOW.total_seconds()
    if result.etag and (is_slow or options.looks_first):
        return await _follow(s3, options, source_key, target_key, result)
    return result


async def _follow(
    s3: ObjectRequests, options: CopyOptions, source_key: str, target_key: str, result: CopyResult
) -> CopyResult:
    """Copy again until production has what legacy has, as long as our own copy is there."""
    for _ in range(FOLLOWED):
        legacy, existing = await s3.find("legacy", source_key), await s3.find("production", target_key)
        if legacy is None or existing is None or existing.etag != result.etag:
            break
        if await are_same(s3, source_key, legacy, target_key, existing):
            break
        result = await replace_object(s3, options, source_key, target_key, existing)
    return result
