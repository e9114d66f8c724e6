"""Of two different objects, which counts: the legacy one, the production one, or nobody can tell."""

import time
from typing import Literal, NamedTuple

from rowferry.s3.clocks import find_age, put_in_order
from rowferry.s3.responses import Response
from rowferry_worker.objects.clocks import Clocks
from rowferry_worker.objects.requests import ObjectRequests

Precedence = Literal["legacy", "application", "production", "unclear"]
"""What counts. legacy: the production object is older, or a copy of ours; application: the production object, which the
application has written since it was switched; production: a newer object of unknown origin; unclear: nobody can tell
which of the two was written last."""

MARGIN_SECONDS = 2.0
"""By how much a moment of PostgreSQL's clock may be missed, since servers tell the ages of objects in whole seconds."""


class Timeline(NamedTuple):
    """Moments of a migration whose rows stay, by time.monotonic(); None: there was none."""

    began: float | None = None
    """When the first attempt at the batch began; None: this is the first, so no copy of ours can be half done."""
    switched: float | None = None
    """Since when the application may be writing to the production bucket."""
    abandoned: tuple[float, float] | None = None
    """When it was switched before, and when it went back to the legacy bucket."""


NO_TIMELINE = Timeline()


class Pair(NamedTuple):
    """A legacy object and a production object that differ, by their keys and headers."""

    legacy_key: str
    legacy: Response
    production_key: str
    production: Response


async def find_precedence(s3: ObjectRequests, clocks: Clocks, pair: Pair, timeline: Timeline) -> Precedence:
    """Return which of two different objects counts.

    The order of two writes is read from the clocks of their servers, as far as these are known to agree; what a write
    of ours has left is known by its ETag, or, before the application is switched, by its time.
    """
    if await s3.large.is_own_copy(pair.production_key, pair.production.etag or ""):
        return "legacy"
    if timeline.abandoned is not None and _is_between(pair.production, *timeline.abandoned):
        return "legacy"
    skew = await clocks.measure(s3, pair.legacy_key, pair.production_key)
    order = put_in_order(pair.legacy, pair.production, skew, is_end_told=timeline.switched is None)
    if order == "newer":
        return "legacy"
    if order == "older":
        return "application" if _is_since(pair.production, timeline.switched) else "production"
    # Until it is switched, the application writes to the legacy bucket only: an earlier attempt has left this.
    is_ours = timeline.switched is None and _is_since(pair.production, timeline.began)
    return "legacy" if is_ours else "unclear"


def _is_since(production: Response, moment: float | None) -> bool:
    """Return whether an object was written since a moment, as far as its server's clock tells."""
    age = find_age(production)
    return moment is not None and age is not None and age <= time.monotonic() - moment + MARGIN_SECONDS


def _is_between(production: Response, first: float, last: float) -> bool:
    age, now = find_age(production), time.monotonic()
    return age is not None and now - last - MARGIN_SECONDS <= age + 1 and age <= now - first + MARGIN_SECONDS
