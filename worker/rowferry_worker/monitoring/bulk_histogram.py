"""A histogram of prometheus-client that takes in many observations at once, for a tenth of the CPU."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from prometheus_client import Histogram


class BulkHistogram(Histogram):
    """A histogram; what is observed together is seen together."""

    def observe_all(self, amounts: Sequence[float]) -> None:
        """Take in several observations."""
        total, buckets = cast("Any", self._sum), cast("list[Any]", self._buckets)  # pyright: ignore[reportUnknownMemberType]
        total.inc(sum(amounts))
        for index, count in Counter([bisect_left(self._upper_bounds, amount) for amount in amounts]).items():
            buckets[index].inc(count)
