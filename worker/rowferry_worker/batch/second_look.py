"""The end of step 3 of 5: look at the legacy objects again, and copy once more what was rewritten meanwhile."""

from collections.abc import Mapping

from rowferry.batch import Outcome
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.objects.copy import CopyOptions, CopyResult
from rowferry_worker.objects.followed_copy import follow
from rowferry_worker.objects.scheduler import ObjectResult


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
    objects, so the look is the last thing before. Where no row moves (`stays`), only what was written now is looked at:
    what was found equal was compared a moment ago, and is in each pass.
    """
    looked_at = {
        key: result
        for key, result in by_key.items()
        if isinstance(result, CopyResult) and result.etag and (result.outcome is Outcome.MIGRATED or not stays)
    }
    if not looked_at:
        return dict(by_key)
    s3 = context.object_requests()
    found = run_copies(
        context,
        lambda key: follow(s3, options, *objects[key], looked_at[key]),
        looked_at,
        is_look=True,
    )
    return {**by_key, **found}
