"""By how much the clocks of a migration's two servers differ; asked once objects are met whose order matters."""

import asyncio
import time
from datetime import timedelta

from rowferry.plan import SideName
from rowferry.s3.clocks import NO_SKEW, SAMPLE_EVERY, SAMPLES, ServerClock, Skew, compare_clocks, read_date
from rowferry_worker.objects.requests import ObjectRequests

MEASURED_FOR = timedelta(minutes=10)
"""How long a measurement counts: clocks drift, and are set."""


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
