"""The end of step 3 of 5: look at legacy objects that were copied a while ago, and copy again what was rewritten."""

import math
import time
from collections import Counter
from collections.abc import Container, Mapping
from datetime import timedelta

from rowferry.batch import Outcome
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.copying.copy import CopyOptions, CopyResult
from rowferry_worker.copying.follow import follow
from rowferry_worker.scheduling.copy_run import ObjectResult

FRESH_FOR = timedelta(seconds=2)
"""What was read within so long before its row moves is not looked at again: a look would be as old by the COMMIT."""
FOLLOWED = 3
"""How often one attempt copies an object again that is rewritten again and again."""
MOST_ROUNDS = 8
"""How often it looks: in the last round nothing is copied any more."""


def look_at_sources(
    context: BatchContext,
    options: CopyOptions,
    objects: Mapping[str, tuple[str, str]],
    by_key: Mapping[str, ObjectResult],
    *,
    stays: bool,
    each: bool = False,
) -> dict[str, ObjectResult]:
    """Return how the copies ended, each copied object being what its legacy object is now, or was FRESH_FOR ago.

    `objects`: the legacy and the production key behind each key of `by_key`. Rows that move are about to follow their
    objects: what was read longer ago is looked at, and once more where another was rewritten, since that takes a
    while. Where no row moves (`stays`), only what was written now is looked at: the rest was compared, and is in each
    pass. `each`: look at all of them, however lately they were read, as the plan may demand.
    """
    each = each or context.migration.plan.legacy.rewritten
    found, times = dict(by_key), Counter[str]()
    read_at = {key: result.began for key, result in found.items() if isinstance(result, CopyResult)}
    candidates: Mapping[str, ObjectResult] = found
    current = set[str]()
    """What was looked at since an object was last copied again, or failed to be, which takes a while."""
    for number in range(MOST_ROUNDS):
        began = time.monotonic()
        stale = math.inf if each else began - FRESH_FOR.total_seconds()
        copied = _choose_copied(candidates, stays=stays)
        looked_at = {key: result for key, result in copied.items() if read_at[key] < stale and key not in current}
        if not looked_at:
            break
        tired = {key for key in looked_at if times[key] == FOLLOWED or number == MOST_ROUNDS - 1}
        now = _look(context, options, objects, looked_at, tired)
        found |= now
        changed = {key: result for key, result in now.items() if result is not looked_at[key]}
        copied_again = {key: result.began for key, result in changed.items() if isinstance(result, CopyResult)}
        read_at |= dict.fromkeys(looked_at, began) | copied_again
        times.update(changed.keys())
        current = set[str]() if changed else current | looked_at.keys()
        candidates = changed if changed and stays else candidates
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
