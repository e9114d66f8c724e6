"""Paces one process: how many objects are in flight, and how fast each operation goes to each server."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rowferry.s3.retry import LONGEST_TURN
from rowferry_worker.pacing.in_flight import InFlightLimit
from rowferry_worker.pacing.learned_rate import LearnedRate
from rowferry_worker.pacing.rate_limit import RateLimiter, Waits
from rowferry_worker.pacing.tenths import TENTH_SECONDS

RESERVE, FEW = 1.5, 4
"""Objects in flight while a rate holds them back: so many times what the rate needs, and a few."""
LONGEST_SECONDS = LONGEST_TURN.total_seconds()
LONELY_BEATS = 2
"""A worker of which so many heartbeats told no other that is held back shares no bound: others would meet it."""
STALE_SECONDS = 16.0
"""What other workers get through is forgotten when so many seconds have brought no heartbeat."""


@dataclass(slots=True)
class Pacer:
    """Told of each request's end; says what may begin. Used on the event loop only.

    A rate's key names the server, the bucket and the operation.
    """

    least: int
    most: int
    clock: Callable[[], float] = time.monotonic
    limit: InFlightLimit = field(init=False)
    rates: dict[str, LearnedRate] = field(init=False, default_factory=dict[str, LearnedRate])
    _bounds: dict[RateLimiter, Waits] = field(init=False, default_factory=dict[RateLimiter, Waits])
    """How long requests wait for the bounds of the plan."""
    _is_alone: bool = field(init=False, default=True)
    _heard_at: float = field(init=False, default=0.0)
    _decide_at: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        """Begin without any rate."""
        self.limit = InFlightLimit(self.least, self.most)
        self._decide_at = self.clock() + TENTH_SECONDS

    def reserve(self, key: str, bound: RateLimiter | None = None) -> float:
        """Take the turn of a request, under the plan's bound as well; return the seconds to wait for it.

        More than LONGEST_TURN: none was taken.
        """
        rate = self.rates.get(key)
        wait = 0.0 if rate is None or rate.per_second is None else rate.reserve(self.clock())
        if bound is None or wait > LONGEST_SECONDS:
            return wait
        bound_wait = self._reserve_bound(bound)
        if bound_wait > LONGEST_SECONDS and rate is not None:
            rate.give_back()
        return max(wait, bound_wait)

    def _reserve_bound(self, bound: RateLimiter) -> float:
        waits = self._bounds.get(bound)
        if waits is None:
            waits = self._bounds[bound] = Waits()
        wait = bound.reserve().total_seconds()
        waits.note(wait)
        return wait

    def note_success(self, key: str, seconds: float, size_bytes: int, in_flight: int) -> bool:
        """Take a success in, by the size of its body; return whether the limit may be another now."""
        now = self.clock()
        rate = self.rates.get(key)
        if rate is None:
            rate = self._begin_rate(key, now)
        rate.note_success(seconds)
        has_ended = self.limit.note((key, size_bytes.bit_length()), seconds, in_flight, now)
        return self._decide(now) if now >= self._decide_at else has_ended

    def note_successes(self, key: str, seconds: Sequence[float], size_bytes: int, in_flight: int) -> bool:
        """Take in successes that have ended since the last call, as `note_success`."""
        has_changed = False
        for each in seconds:
            has_changed |= self.note_success(key, each, size_bytes, in_flight)
        return has_changed

    def note_refused(self, key: str, retry_after: float = 0.0) -> bool:
        """Take in a refusal that asks to slow down, for `retry_after` seconds at least; else as `note_success`."""
        now = self.clock()
        rate = self.rates.get(key)
        if rate is None:
            rate = self._begin_rate(key, now)
        is_urgent = rate.note_refused(now, retry_after)
        return self._decide(now) if is_urgent or now >= self._decide_at else False

    def note_answer(self) -> bool:
        """Take in that the server is there, with an answer that says nothing of its pace; else as `note_success`."""
        return self.limit.note_answer(self.clock())

    def note_failure(self) -> bool:
        """Take in a failure that says nothing of the rate; else as `note_success`."""
        return self.limit.note_failure(self.clock())

    def hear_fleet(self, workers: int, rates: Mapping[str, tuple[float, int]]) -> None:
        """Take in the live workers, and what those that a server holds back get through together, and how many.

        A worker that starts beside others begins gently, and at an even share where they are held back.
        """
        now = self._heard_at = self.clock()
        self._is_alone = workers <= 1
        self.limit.begin_among(workers)
        for key in rates.keys() - self.rates.keys():
            per_second, held_back = rates[key]
            self._begin_rate(key, now).hold_back(per_second / (held_back + 1))
        for key, rate in self.rates.items():
            per_second, held_back = rates.get(key, (0.0, 0))
            rate.fair = None
            rate.lonely_beats = rate.lonely_beats + 1 if held_back <= 1 and rate.is_held_back else 0
            rate.is_alone = self._is_alone or rate.lonely_beats >= LONELY_BEATS
            if 2 * held_back > workers > 1:
                rate.follow(per_second / held_back)
            if held_back:
                rate.fair = per_second / held_back if held_back > 1 else None

    def _begin_rate(self, key: str, now: float) -> LearnedRate:
        rate = self.rates[key] = LearnedRate(now, is_alone=self._is_alone)
        return rate

    def _decide(self, now: float) -> bool:
        """Let each rate decide, and bound what is in flight by the longest wait for one."""
        self._decide_at = now + TENTH_SECONDS
        if now - self._heard_at > STALE_SECONDS:
            for rate in self.rates.values():
                rate.fair = None
        cap = math.inf
        for rate in self.rates.values():
            was_free = rate.per_second is None
            rate.end_tenth(now)
            if rate.per_second is not None:
                is_new = was_free or rate.is_new
                cap = min(cap, self._find_cap(rate.waits, rate.per_second, rate.latency, is_new=is_new))
                rate.is_new = False
        for bound, waits in self._bounds.items():
            per_second = bound.per_second()
            if per_second is not None and (waits.seconds > 0 or self.limit.cap < math.inf):
                cap = min(cap, self._find_cap(waits, per_second, self.limit.latency, is_new=False))
        if cap >= self.most:
            cap = math.inf
        if cap < math.inf or self.limit.cap < math.inf:
            self.limit.set_cap(cap, now)
        return True

    def _find_cap(self, waits: Waits, per_second: float, latency: float, *, is_new: bool) -> float:
        """Return how many objects may be in flight so that turns wait about half a round trip."""
        wait, cap, enough = waits.take_mean(), self.limit.cap, per_second * latency * RESERVE + FEW
        if cap == math.inf or is_new:
            return enough
        if wait is None:
            return max(cap, enough)
        wanted = min(max(0.5 * latency, 2 / per_second), 0.5 * LONGEST_SECONDS)
        change = 0.3 * (wanted - wait) * per_second
        return max(1.0, cap + max(-0.2 * cap, min(0.2 * cap + 1, change)))
