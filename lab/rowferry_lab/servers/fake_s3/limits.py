"""Which requests the fake S3 server refuses, and how many it let through, by operation and by account."""

import random
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.settings import Limits

READS = frozenset({"GET", "HEAD"})


class Bound(Protocol):
    """Lets so many requests through."""

    def take(self, now: float) -> bool:
        """Return whether a request passes; `now` is of a clock that never goes back, in seconds."""
        ...


class TokenBucket:
    """Tokens flow in at a rate, up to `burst`; each request takes one. It begins full."""

    def __init__(self, per_second: float, burst: float, *, is_harsh: bool = False) -> None:
        """`burst` is 1 at least. A harsh one takes a token for a refused request, too, and owes those of a second."""
        self._per_second = per_second
        self._least = -per_second if is_harsh else 0.0
        self._burst = max(burst, 1.0)
        self._tokens = self._burst
        self._filled_at: float | None = None

    def take(self, now: float) -> bool:
        """Return whether there was a token."""
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        is_free = self._tokens >= 1
        if is_free or self._least:
            self._tokens = max(self._least, self._tokens - 1)
        return is_free


class Window:
    """So many requests in each second of the clock."""

    def __init__(self, per_second: float) -> None:
        """Begin with an empty second."""
        self._per_second = per_second
        self._second = -1
        self._taken = 0

    def take(self, now: float) -> bool:
        """Return whether this second has room."""
        if int(now) != self._second:
            self._second, self._taken = int(now), 0
        self._taken += 1
        return self._taken <= self._per_second


class Admission:
    """Decides about each request and counts."""

    def __init__(self, limits: Limits, seed: int) -> None:
        """Begin with full buckets."""
        self._dice = random.Random(seed)  # noqa: S311 - to be repeatable, not to be secret
        self.accepted: Counter[str] = Counter()
        """By operation."""
        self.refused: Counter[str] = Counter()
        """By operation."""
        self.writes_accepted: Counter[str] = Counter()
        """By the access key of the client."""
        self.writes_refused: Counter[str] = Counter()
        """By the access key of the client."""
        self.set_limits(limits)

    def set_limits(self, limits: Limits) -> None:
        """Begin anew with other limits; the counts stay."""
        self.limits = limits
        self._bounds: dict[tuple[bool, str], Bound] = {}
        self._rates = {False: limits.writes_per_second, True: limits.reads_per_second}

    def admit(self, request: Request, now: float) -> bool:
        """Return whether a request is answered, and count it."""
        reads = request.method in READS
        admitted = not self._rates[reads] or self._find_bound(request.bucket, reads).take(now)
        if admitted and self.limits.refused_share:
            admitted = self._dice.random() >= self.limits.refused_share
        (self.accepted if admitted else self.refused)[request.operation] += 1
        if not reads:
            (self.writes_accepted if admitted else self.writes_refused)[request.account] += 1
        return admitted

    def describe(self) -> dict[str, Mapping[str, int]]:
        """Return the counts."""
        return {
            "accepted": self.accepted,
            "refused": self.refused,
            "writes_accepted": self.writes_accepted,
            "writes_refused": self.writes_refused,
        }

    def _find_bound(self, bucket: str, reads: bool) -> Bound:
        name = (reads, bucket)
        found = self._bounds.get(name)
        if found is None:
            found = self._bounds[name] = self._make_bound(self._rates[reads])
        return found

    def _make_bound(self, rate: float) -> Bound:
        limits = self.limits
        if limits.windows:
            return Window(rate)
        return TokenBucket(rate, rate * limits.burst_seconds, is_harsh=limits.counts_refused)
