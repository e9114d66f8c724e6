"""Paces one process: how many objects are in flight, and how fast each operation goes to each server."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rowferry.s3.retry import LONGEST_TURN
from rowferry_worker.pacing.in_flight import RESERVE, InFlightLimit
from rowferry_worker.pacing.learned_rate import FEW, LearnedRate
from rowferry_worker.pacing.rate_limit import Bound

TENTH_SECONDS = 0.1
"""How often rates are decided on."""
LONGEST_SECONDS = LONGEST_TURN.total_seconds()


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
    _bounds: set[Bound] = field(init=False, default_factory=set[Bound])
    """The bounds of plans that requests have asked."""
    _decide_at: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        """Begin without any rate."""
        self.limit = InFlightLimit(self.least, self.most)
        self._decide_at = self.clock() + TENTH_SECONDS

    def reserve(self, key: str, bound: Bound | None = None) -> float:
        """Take the turn of a request, under the plan's bound as well; return the seconds to wait for it.

        More than LONGEST_TURN: none was taken.
        """
        rate = self.rates.get(key)
        wait = 0.0 if rate is None or rate.per_second is None else rate.reserve(self.clock())
        if bound is None or wait > LONGEST_SECONDS:
            return wait
        self._bounds.add(bound)
        bound_wait = bound.reserve(self.clock())
        if bound_wait > LONGEST_SECONDS and rate is not None:
            rate.give_back()
        return max(wait, bound_wait)

    def note_success(self, key: str, seconds: float, size_bytes: int, in_flight: int) -> bool:
        """Take a success in, by the size of its body; return whether the limit may be another now."""
        return self._note(key, 1, seconds, size_bytes, in_flight)

    def note_successes(self, key: str, seconds: Sequence[float], size_bytes: int, in_flight: int) -> bool:
        """Take in what a connection has finished since it last said so; `size_bytes` of one. Else as `note_success`."""
        return bool(seconds) and self._note(key, len(seconds), sum(seconds), size_bytes, in_flight)

    def _note(self, key: str, count: int, seconds: float, size_bytes: int, in_flight: int) -> bool:
        now = self.clock()
        rate = self.rates.get(key)
        if rate is None:
            rate = self.rates[key] = LearnedRate(now)
        rate.note_successes(count, seconds)
        has_ended = self.limit.note((key, size_bytes.bit_length()), count, seconds, in_flight, now)
        return self._decide(now) if now >= self._decide_at else has_ended

    def note_refused(self, key: str, retry_after: float = 0.0) -> bool:
        """Take in a refusal that asks to slow down, for `retry_after` seconds at least; else as `note_success`."""
        now = self.clock()
        rate = self.rates.get(key)
        if rate is None:
            rate = self.rates[key] = LearnedRate(now)
        is_urgent = rate.note_refused(retry_after)
        return self._decide(now) if is_urgent or now >= self._decide_at else False

    def hear_fleet(self, workers: int, rates: Mapping[str, tuple[float, int]]) -> None:
        """Take in the live workers, and what those that a server holds back get through together, and how many.

        A worker that starts beside others begins gently, and at an even share where they are held back.
        """
        now = self.clock()
        self.limit.begin_among(workers)
        for key, (per_second, held_back) in rates.items():
            if key not in self.rates:
                self.rates[key] = LearnedRate(now)
                self.rates[key].hold_back(per_second / (held_back + 1), now)
        for key, rate in self.rates.items():
            per_second, held_back = rates.get(key, (0.0, 0))
            rate.fair = per_second / held_back if held_back > 1 else 0.0
            if 2 * held_back > workers > 1:
                rate.follow()

    def _decide(self, now: float) -> bool:
        """Let each rate decide, and bound what is in flight by what the slowest needs."""
        self._decide_at = now + TENTH_SECONDS
        cap = math.inf
        for rate in self.rates.values():
            rate.end_tenth(now)
            if rate.per_second is not None:
                cap = min(cap, self._find_cap(rate.turns.take_mean_wait(), rate.per_second, rate.latency))
        for bound in self._bounds:
            wait, per_second = bound.turns.take_mean_wait(), bound.per_second()
            if wait or self.limit.cap < math.inf:
                cap = min(cap, self._find_cap(wait, per_second, self.limit.latency))
        if cap >= self.most:
            cap = math.inf
        if cap < math.inf or self.limit.cap < math.inf:
            self.limit.set_cap(cap, now)
        return True

    def _find_cap(self, wait: float | None, per_second: float, latency: float) -> float:
        """Return how many objects may be in flight at a rate, so that turns wait a little; `wait`: they do now."""
        cap, enough = self.limit.cap, per_second * latency * RESERVE + FEW
        if wait is None or not enough <= cap < math.inf:
            return enough
        if wait < 0.25 * latency:
            return 1.2 * cap + 1
        return max(enough, 0.9 * cap) if wait > 0.5 * LONGEST_SECONDS else cap
