"""Simulated servers: each says at once whether it lets a request through and how long its response takes."""

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol

Latency = Callable[[Random], float]
"""Draws the seconds of one response."""
SMALL = 20_000
"""The size of an object in bytes."""


class Answer(NamedTuple):
    """What becomes of a request."""

    seconds: float
    result: str = "ok"
    """`ok`, `throttled` or `failed`."""


class Arrival(NamedTuple):
    """A request as a server sees it."""

    at: float
    worker: int
    operation: str


class Server(Protocol):
    """Answers requests in the order of their arrival."""

    def answer(self, arrival: Arrival, dice: Random, /) -> Answer:
        """Return the response to a request."""
        ...


def constant(seconds: float) -> Latency:
    return lambda _: seconds


def lognormal(median: float, sigma: float) -> Latency:
    return lambda dice: median * math.exp(dice.gauss(0, sigma))


def bimodal(fast: float, slow: float, share_slow: float) -> Latency:
    return lambda dice: (slow if dice.random() < share_slow else fast) * (0.9 + 0.2 * dice.random())


def jittered(latency: Latency, share_instant: float) -> Latency:
    """Answer a share of all requests within a millisecond, as a cache does."""
    return lambda dice: 0.0005 if dice.random() < share_instant else latency(dice)


@dataclass
class Free:
    """Lets everything through."""

    latency: Latency

    def answer(self, _arrival: Arrival, dice: Random) -> Answer:
        return Answer(self.latency(dice))


@dataclass
class ConcurrencyLimited:
    """Works on so many requests at once; the others wait in line."""

    latency: Latency
    at_once: int
    _free_at: list[float] = field(default_factory=list[float])

    def answer(self, arrival: Arrival, dice: Random) -> Answer:
        start = arrival.at
        if len(self._free_at) >= self.at_once:
            start = max(start, heapq.heappop(self._free_at))
        ends = start + self.latency(dice)
        heapq.heappush(self._free_at, ends)
        return Answer(ends - arrival.at)


@dataclass
class Bucket:
    """A token bucket, or the quota of a clock second (`fixed_window`).

    With `counts_all`, what is refused takes a token as well, down to a debt of one second, as the benches' stub does.
    """

    per_second: float
    burst_seconds: float = 0.1
    fixed_window: bool = False
    counts_all: bool = False
    _tokens: float = math.inf
    """Before the first request: as many as there is room for."""
    _filled_at: float = 0.0

    def takes(self, now: float) -> bool:
        """Return whether a request is let through; workers with a busy CPU send a little out of order."""
        now = max(now, self._filled_at)
        if self.fixed_window:
            if int(now) != int(self._filled_at) or self._tokens == math.inf:
                self._tokens = self.per_second
        else:
            most = max(1.0, self.per_second * self.burst_seconds)
            gained = (now - self._filled_at) * self.per_second
            self._tokens = min(most, self._tokens + gained)
        self._filled_at = now
        is_free = self._tokens >= 1
        if is_free or self.counts_all:
            self._tokens = max(-self.per_second, self._tokens - 1)
        return is_free


@dataclass
class Sliding:
    """Lets so many through within the last `seconds`; with `counts_all`, it counts what it refuses as well."""

    per_second: float
    seconds: float = 1.0
    counts_all: bool = False
    _taken: deque[float] = field(default_factory=deque[float])
    _latest: float = 0.0

    def takes(self, now: float) -> bool:
        """Return whether a request is let through."""
        self._latest = now = max(now, self._latest)
        while self._taken and self._taken[0] <= now - self.seconds:
            self._taken.popleft()
        is_free = len(self._taken) < self.per_second * self.seconds
        if is_free or self.counts_all:
            self._taken.append(now)
        return is_free


class Bound(Protocol):
    """Says of each request whether it is let through."""

    def takes(self, now: float) -> bool:
        """Return whether a request at this moment is let through."""
        ...


@dataclass
class Throttling:
    """Refuses copies above its bound: one for all, or one an address (a worker)."""

    inside: Server
    bucket: Callable[[], Bound]
    scope: str = "all"
    """`all` or `address`."""
    refusal_seconds: float = 0.01
    _buckets: dict[int, Bound] = field(default_factory=dict[int, Bound])

    def answer(self, arrival: Arrival, dice: Random) -> Answer:
        if arrival.operation == "CopyObject":
            name = arrival.worker if self.scope == "address" else 0
            if name not in self._buckets:
                self._buckets[name] = self.bucket()
            if not self._buckets[name].takes(arrival.at):
                return Answer(self.refusal_seconds, "throttled")
        return self.inside.answer(arrival, dice)


@dataclass
class Unlucky:
    """Refuses a share of all copies at random, however few there are."""

    inside: Server
    share: float
    refusal_seconds: float = 0.01

    def answer(self, arrival: Arrival, dice: Random) -> Answer:
        if arrival.operation == "CopyObject" and dice.random() < self.share:
            return Answer(self.refusal_seconds, "throttled")
        return self.inside.answer(arrival, dice)


@dataclass
class Away:
    """Refuses connections from one second to another."""

    inside: Server
    since: float
    until: float

    def answer(self, arrival: Arrival, dice: Random) -> Answer:
        if self.since <= arrival.at < self.until:
            return Answer(0.001, "failed")
        found = self.inside.answer(arrival, dice)
        lost = arrival.at < self.since < arrival.at + found.seconds
        return Answer(self.since - arrival.at, "failed") if lost else found


@dataclass
class Changing:
    """Another server from some moment on: what was true has changed."""

    before: Server
    after: Server
    at: float

    def answer(self, arrival: Arrival, dice: Random) -> Answer:
        return (self.before if arrival.at < self.at else self.after).answer(arrival, dice)
