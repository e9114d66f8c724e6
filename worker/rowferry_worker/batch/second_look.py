"""The end of step 3 of 5: look at the legacy objects again, and copy once more what was rewritten meanwhile."""

from collections import Counter
from collections.abc import Container, Mapping

from rowferry.batch import Outcome
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.copying.copy import CopyOptions, CopyResult
from rowferry_worker.copying.follow import follow
from rowferry_worker.scheduling.scheduler import ObjectResult

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
