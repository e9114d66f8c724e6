"""Of two different objects, which counts: the legacy one, the production one, or nobody can tell."""

import asyncio
import time
from datetime import timedelta
from typing import Literal, NamedTuple

from rowferry.plan import SideName
from rowferry.s3.clocks import (
    NO_SKEW,
    SAMPLE_EVERY,
    SAMPLES,
    ServerClock,
    Skew,
    compare_clocks,
    find_age,
    put_in_order,
    read_date,
)
from rowferry_worker.objects.compare import Pair
from rowferry_worker.objects.own_copies import KnownCopies, KnownCopy
from rowferry_worker.objects.requests import ObjectRequests

MEASURED_FOR = timedelta(minutes=10)
"""How long a measurement counts: clocks drift, and are set."""
Precedence = Literal["legacy", "application", "production", "unclear"]
"""What counts. legacy: the production object is older, or a copy of ours; application: the production object, which the
application has written since it was switched; production: a newer object of unknown origin; unclear: nobody can tell
which of the two was written last."""
MARGIN_SECONDS = 2.0
"""By how much the age of an object may be missed: servers tell times in whole seconds, and responses take a while."""
YOUNG_SECONDS = 10.0
"""For so long after a migration was made, ages may not tell whether an object was written before or since."""


class Clocks:
    """By how much the clocks of the two servers differ: known, or measured at first use; event loop only."""

    def __init__(self, skew: Skew | None = NO_SKEW) -> None:
        """`skew`: what is known without asking; None: nothing."""
        self._known = skew
        self._measured: Skew | None = None
        self._measured_at = 0.0
        self._turn = asyncio.Lock()

    async def measure(self, s3: ObjectRequests, legacy_key: str, production_key: str) -> Skew:
        """Return by how much the clocks differ; where that is not known, it is asked of two objects that are there."""
        if self._known is not None:
            return self._known
        async with self._turn:
            is_fresh = time.monotonic() - self._measured_at < MEASURED_FOR.total_seconds()
            if self._measured is None or not is_fresh:
                self._measured = await _measure(s3, {"legacy": legacy_key, "production": production_key})
                self._measured_at = time.monotonic()
            return self._measured


async def _measure(s3: ObjectRequests, keys: dict[SideName, str]) -> Skew:
    clocks: dict[SideName, ServerClock] = {side: ServerClock() for side in keys}
    for number in range(SAMPLES):
        if number:
            await asyncio.sleep(SAMPLE_EVERY.total_seconds())
        for side, key in keys.items():
            sent = time.monotonic()
            response = await s3.find(side, key)
            if response is not None:  # it may be deleted at any moment
                clocks[side].note(read_date(response.headers), sent, time.monotonic())
    return compare_clocks(clocks["legacy"], clocks["production"])


class Timeline(NamedTuple):
    """Moments of a migration whose rows stay, by time.monotonic(); None: there was none."""

    began: float | None = None
    """When the migration was made: until it is switched, the application writes to the legacy bucket only."""
    switched: float | None = None
    """Since when the application may be writing to the production bucket."""
    abandoned: tuple[float, float] | None = None
    """When it was switched before, and when it went back to the legacy bucket."""

    @property
    def is_doubtful(self) -> bool:
        """Return whether what is written now may not be known as a copy by its age later on."""
        is_young = self.began is not None and time.monotonic() - self.began < YOUNG_SECONDS
        return is_young or self.switched is not None


NO_TIMELINE = Timeline()


async def find_precedence(
    s3: ObjectRequests, pair: Pair, copies: KnownCopies, clocks: Clocks, timeline: Timeline
) -> Precedence:
    """Return which of two different objects counts.

    The order of two writes is read from the clocks of their servers, as far as these are known to agree. A copy of ours
    is known by its ETag where that is remembered, else by its age: it was written before the application was switched.
    """
    age, known = find_age(pair.production), await copies.find_copy(pair.production_key)
    may_be_ours = known is not None and known.is_pending
    is_abandoned = timeline.abandoned is not None and _may_be_between(age, *timeline.abandoned)
    if is_abandoned or _is_copy(pair, age, known) or (may_be_ours and timeline.switched is None):
        return "legacy"
    skew = await clocks.measure(s3, pair.legacy_key, pair.production_key)
    # Before the switch whatever has come by parts is a copy of ours, which Last-Modified may call older than it is.
    is_end_told = timeline.began is not None and timeline.switched is None
    order = put_in_order(pair.legacy, pair.production, skew, is_end_told=is_end_told)
    if order == "newer":
        return "legacy"
    if order == "older" and not may_be_ours:
        return "application" if _may_be_since(age, timeline.switched) else "production"
    return "legacy" if order == "unclear" and _is_ours(age, timeline) else "unclear"


async def is_earlier_copy(s3: ObjectRequests, pair: Pair, clocks: Clocks, tried_for: float | None) -> bool:
    """Return whether a production object is an earlier attempt's copy, and no newer than the legacy object.

    A killed worker tells nobody what it has copied. But its copies were written since that attempt began, where nothing
    stood; no application writes there for a row that has not moved. `tried_for`: how many seconds the first attempt had
    begun before the production object was asked for; None: this is the first. An age may be nearly two seconds more
    than is told: `Date` is cut to whole seconds, and some servers (versitygw) round `Last-Modified` up.
    """
    age = find_age(pair.production)
    if tried_for is None or age is None or age + MARGIN_SECONDS > tried_for:
        return False
    skew = await clocks.measure(s3, pair.legacy_key, pair.production_key)
    return put_in_order(pair.legacy, pair.production, skew) != "older"


def _is_copy(pair: Pair, age: float | None, known: KnownCopy | None) -> bool:
    """Return whether the production object is what a write of ours has left, by its ETag and its age."""
    if known is None or not known.etag or known.etag != pair.production.etag:
        return False
    return not _is_written_since(age, known.noted_for)


def _is_written_since(age: float | None, since: timedelta) -> bool:
    """Return whether an object was surely written later than so long ago."""
    return age is not None and age + MARGIN_SECONDS < since.total_seconds()


def _may_be_since(age: float | None, moment: float | None) -> bool:
    """Return whether an object of this age may have been written since a moment."""
    return moment is not None and age is not None and age - MARGIN_SECONDS <= time.monotonic() - moment


def _may_be_between(age: float | None, first: float, last: float) -> bool:
    return age is not None and _may_be_since(age, first) and age + MARGIN_SECONDS >= time.monotonic() - last


def _is_ours(age: float | None, timeline: Timeline) -> bool:
    """Return whether an object was surely written between the beginning of the migration and the switch."""
    if age is None or timeline.began is None:
        return False
    now = time.monotonic()
    is_before_switch = timeline.switched is None or age - MARGIN_SECONDS >= now - timeline.switched
    return is_before_switch and age + MARGIN_SECONDS <= now - timeline.began
