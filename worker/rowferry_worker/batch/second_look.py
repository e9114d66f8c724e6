"""The end of step 3 of 5: look at the legacy objects again, and copy once more what was rewritten meanwhile."""

import logging
from collections import Counter
from collections.abc import Container, Mapping

from rowferry.batch import Outcome
from rowferry.errors import ObjectNotFound, ServerFault
from rowferry.s3.clocks import UPLOAD_SPAN, written_at
from rowferry.s3.responses import Response
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object, replace_object
from rowferry_worker.objects.compare import Pair, are_same, compare_headers, is_digest
from rowferry_worker.objects.own_copies import KnownCopies
from rowferry_worker.objects.requests import ObjectRequests, object_changed
from rowferry_worker.scheduling.scheduler import ObjectResult

_log = logging.getLogger(__name__)

FOLLOWED = 3
"""How often one attempt copies an object again that is rewritten again and again."""
MOST_ROUNDS = 8
"""How often it looks at all of them: in the last round nothing is copied any more."""


def look_at_sources(
    context: BatchContext,
    options: CopyOptions,
    objects: Mapping[str, tuple[str, str]],
    by_key: Mapping[str, ObjectResult],
    *,
    stays: bool,
) -> dict[str, ObjectResult]:
    """Return how the copies ended, each copied object being what its legacy object is now.

    `objects`: the legacy and the production key behind each key of `by_key`. Rows that move are about to follow their
    objects, so a look at all of them is the last thing before: copying takes a while, and calls for another look. Where
    no row moves (`stays`), only what was written now is looked at: the rest was compared a moment ago, and is in each
    pass.
    """
    found, times = dict(by_key), Counter[str]()
    looked_at = _choose_copied(found, stays=stays)
    for number in range(MOST_ROUNDS):
        if not looked_at:
            break
        tired = {key for key in looked_at if times[key] == FOLLOWED or number == MOST_ROUNDS - 1}
        now = _look(context, options, objects, looked_at, tired)
        found |= now
        changed = {key: result for key, result in now.items() if result is not looked_at[key]}
        if not any(isinstance(result, CopyResult) for result in changed.values()):
            break
        times.update(changed.keys())
        looked_at = _choose_copied(changed if stays else found, stays=stays)
    return found


def _look(
    context: BatchContext,
    options: CopyOptions,
    objects: Mapping[str, tuple[str, str]],
    copied: Mapping[str, CopyResult],
    tired: Container[str],
) -> dict[str, ObjectResult]:
    """Look at each legacy object once, copy again what was rewritten but for the `tired`, and return how that ended."""
    s3 = context.object_requests()
    return run_copies(
        context,
        lambda key: follow(s3, options, *objects[key], copied[key], may_copy=key not in tired),
        copied,
        is_look=True,
    )


def _choose_copied(by_key: Mapping[str, ObjectResult], *, stays: bool) -> dict[str, CopyResult]:
    """Return what was copied, and where rows move, what was found equal as well."""
    return {
        key: result
        for key, result in by_key.items()
        if isinstance(result, CopyResult) and result.etag and (result.outcome is Outcome.MIGRATED or not stays)
    }


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
    return CopyResult(again.outcome, size_bytes, again.etag, again.source_etag, again.seconds)


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
