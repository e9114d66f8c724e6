"""How many objects are in flight: as many as raise the throughput, by Little's law.

Throughput is the number in flight divided by latency (J. D. C. Little, 1961). So the number is raised, and latency
compared with that of the round before, for requests of the same kind: where it rises nearly as much as the number,
more does not pay. No best latency is remembered: a server that becomes slower or faster for good misleads nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

START = 64
"""Objects in flight to begin with, and what latency alone never goes below."""
CLIMB, STEP = 4.0, 1.25
"""The factor of each round at the start, and of later experiments."""
PAYS, FREE = 0.4, 0.15
"""Elasticities of throughput to the number in flight: more pays above the first, fewer cost nothing below the other."""
RESERVE = 1.5
"""Objects in flight, as a multiple of what the throughput needs by Little's law."""
SAMPLES = 256
"""The fewest responses of an experiment; an eighth tells the larger differences of the climb."""
ROUND_SECONDS = 0.05
"""The shortest round."""
USED = 0.7
"""The part of the limit that must be in use for a round to tell anything."""
PROBE_SECONDS = 5.0
"""How long the limit rests until an experiment."""

Kind = tuple[str, int]
"""The server and operation, and the number of bits of the size in bytes."""


class Round(NamedTuple):
    """What a round of responses has shown."""

    load: float
    """Objects in flight, on average."""
    seconds: dict[Kind, float]
    """The mean latency of each kind."""

    def slowdown(self, sums: Mapping[Kind, tuple[int, float]]) -> float:
        """Return how many times as long later requests took, by their kinds; 1 where none is known."""
        known = [(total, count * self.seconds[kind]) for kind, (count, total) in sums.items() if kind in self.seconds]
        return sum(total for total, _ in known) / sum(expected for _, expected in known) if known else 1.0


@dataclass(slots=True)
class InFlightLimit:
    """The limit of one process, from `least` to `most`; used on the event loop only. Times are seconds of one clock.

    A round is as many successes as objects may be in flight, which is about one round trip.
    """

    least: int
    most: int
    value: int = field(init=False)
    """How many objects may be in flight now."""
    free: int = field(init=False)
    """The same for requests that no rate holds back."""
    cap: float = field(init=False, default=math.inf)
    """What rates allow while they hold requests back: more in flight would only wait longer."""
    latency: float = field(init=False, default=0.1)
    """The mean latency of the last round."""
    _target: float = field(init=False)
    """What latency allows."""
    _factor: float = field(init=False, default=CLIMB)
    """What the present experiment, or the next one, multiplies the target by."""
    _before: Round | None = field(init=False, default=None)
    """The round before the present experiment; None: the target rests."""
    _probe_at: float = field(init=False, default=-math.inf)
    _sums: dict[Kind, tuple[int, float]] = field(init=False, default_factory=dict[Kind, tuple[int, float]])
    """The successes of the round, and the seconds that they took together."""
    _count: int = field(init=False, default=0)
    _load: float = field(init=False, default=0.0)
    _began: float = field(init=False, default=-math.inf)
    """When the round began: requests from before tell nothing of it."""

    def __post_init__(self) -> None:
        """Begin small."""
        self._move(0.0, -math.inf)
        self._apply()

    def begin_among(self, workers: int) -> None:
        """Begin with less beside other workers; nothing once there was a response."""
        if self._began == -math.inf and workers > 1:
            self._target = max(2.0, self.least, min(self._target, START / workers))
            self._apply()

    def note(self, kind: Kind, count: int, seconds: float, in_flight: int, now: float) -> bool:
        """Take in so many successes, and their seconds together; return whether the limit may be another now."""
        began = now - seconds / count
        if began < self._began:
            return False
        if not self._count:
            self._began = began
        counted, taken = self._sums.get(kind, (0, 0.0))
        self._sums[kind] = counted + count, taken + seconds
        self._count += count
        self._load += in_flight * count
        is_step = self._before is not None and self._factor <= STEP
        least = max(self.value, SAMPLES if is_step else SAMPLES // 8)
        if self._count < least or now - self._began < ROUND_SECONDS:
            return False
        self._end_round(now)
        self._apply()
        return True

    def set_cap(self, cap: float, now: float) -> None:
        """Let rates decide what is in flight, or, with infinity, latency again, from there on."""
        if cap == math.inf and self.cap < math.inf:
            self._move(float(self.value), now)
            self._before = None
        self.cap = cap
        self._apply()

    def _apply(self) -> None:
        """Put the bounds into effect."""
        self.value = max(1, self.least, int(min(self._target if self.cap == math.inf else self.cap, self.most)))
        self.free = max(self.value, int(self._target))

    def _begin_round(self, now: float) -> None:
        self._sums, self._count, self._load, self._began = {}, 0, 0.0, now

    def _move(self, target: float, now: float) -> None:
        self._target = min(float(self.most), max(float(min(START, self.most)), float(self.least), target))
        self._begin_round(now)

    def _end_round(self, now: float) -> None:
        """Move the target by what the round has shown, unless something else bounded it."""
        sums, load = self._sums, self._load / self._count
        seconds = sum(taken for _, taken in sums.values())
        busy = seconds / (now - self._began)
        self.latency = seconds / self._count
        self._begin_round(now)
        if self.cap < math.inf or min(load, 2 * busy) < USED * self.value:
            return
        ended = Round(load, {kind: taken / count for kind, (count, taken) in sums.items()})
        if self._before is not None:
            self._judge(self._before, ended, sums, now)
        elif now >= self._probe_at:
            self._try(ended, now)

    def _try(self, before: Round, now: float) -> None:
        was, self._before = self._target, before
        self._move(was * self._factor, now)
        if abs(self._target - was) < 1:
            self._rest(was, now)

    def _judge(self, before: Round, ended: Round, sums: Mapping[Kind, tuple[int, float]], now: float) -> None:
        """Keep the target that was tried if it pays, and try the next; or go back."""
        ratio = math.log(ended.load / before.load)
        gain = 1 - math.log(before.slowdown(sums)) / ratio if ratio * math.log(self._factor) > 0 else PAYS
        if gain > PAYS if ratio > 0 else gain < FREE:
            self._try(ended, now)
            return
        self._rest(before.load, now)

    def _rest(self, target: float, now: float) -> None:
        self._factor, self._before = 1 / STEP if self._factor == STEP else STEP, None
        self._probe_at = now + PROBE_SECONDS
        self._move(target, now)
