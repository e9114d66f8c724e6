"""The limit of objects in flight: what latency allows, bounded by rates and by outages."""

import math
from dataclasses import dataclass, field

from rowferry_worker.pacing.climb import Climb, Round
from rowferry_worker.pacing.latency import Kind, LatencyWindow

START = 16
"""Objects in flight to begin with, and what latency alone never goes below."""
ALONE = 4
"""With more live workers than this, each grows more slowly at the start."""
GENTLE_GROWTH = 1.4
USED = 0.7
"""The share of the limit that must be in use for a round to tell anything."""
ROUND_SECONDS = 0.05
"""The shortest round."""
RAMP = 8
"""After an outage the limit begins at this part of what it was, and doubles each round."""
SILENT_SECONDS = 1.0
"""So long with failures and no success is an outage."""
BUSY = 0.3
"""The share of the objects in flight that must be in requests: the others wait for memory, or for a retry."""


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
    """The same for what no rate holds back: a look at an object that was copied."""
    cap: float = field(init=False, default=math.inf)
    """What rates allow while they hold requests back: more in flight would only wait longer."""
    latency: float = field(init=False, default=0.1)
    """The seconds that successes took lately, of any kind."""
    _climb: Climb = field(init=False)
    _window: LatencyWindow = field(init=False, default_factory=LatencyWindow)
    _began: float = field(init=False, default=0.0)
    _load: int = field(init=False, default=0)
    _succeeded_at: float = field(init=False, default=-math.inf)
    _ramp: float = field(init=False, default=math.inf)
    """What an outage has left of the limit."""
    _answers: int = field(init=False, default=0)
    """Responses since the limit was last raised after an outage."""
    _was_doubling: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        """Begin small."""
        lowest = max(min(START, self.most), self.least)
        self._climb = Climb(float(lowest), float(lowest), float(self.most))
        self._apply()

    def begin_among(self, workers: int) -> None:
        """Begin more gently beside other workers; nothing once there was a response."""
        if self._succeeded_at == -math.inf and workers > 1:
            self._climb.target = max(2.0, self.least, min(self._climb.target, START / workers))
            self._climb.growth = GENTLE_GROWTH if workers > ALONE else self._climb.growth
            self._apply()

    def note(self, kind: Kind, seconds: float, in_flight: int, now: float) -> bool:
        """Take a success in; return whether a round has ended, after which the limit may be another."""
        if self._ramp < math.inf:
            return self.note_answer(now)
        self._succeeded_at = now
        if now - seconds < self._climb.moved_at:
            return False
        if not self._load:
            self._began = max(self._began, now - seconds)
        self._load += in_flight
        window = self._window
        window.note(kind, seconds)
        if window.count < self.value or now - self._began < ROUND_SECONDS:
            return False
        self._end_round(now)
        return True

    def note_answer(self, now: float) -> bool:
        """Take in that the server is there; return whether the limit is another now, since an outage is over."""
        self._succeeded_at = now
        if self._ramp == math.inf:
            return False
        self._answers += 1
        if self._answers < self.value:
            return False
        self._answers = 0
        self._ramp = self._ramp * 2 if self._ramp * 2 < self._climb.target else math.inf
        self._climb.forget_rounds()
        self._begin_round(now)
        self._apply()
        return True

    def note_failure(self, now: float) -> bool:
        """Take in a failure that is no refusal; return whether it shows an outage, which makes the limit low."""
        if now - self._succeeded_at < SILENT_SECONDS or self._ramp < math.inf or self._succeeded_at == -math.inf:
            return False
        self._ramp, self._answers = max(1.0, self._climb.target / RAMP), 0
        self._apply()
        return True

    def set_cap(self, cap: float, now: float) -> None:
        """Let rates decide what is in flight, or, with infinity, latency again."""
        if self.cap == math.inf:
            self._was_doubling = self._climb.phase == "doubling"
        elif cap == math.inf:
            self._climb.begin_at(float(self.value), now, doubling=self._was_doubling)
            self._begin_round(now)
        self.cap = cap
        self._apply()

    def _apply(self) -> None:
        """Put the bounds into effect."""
        allowed = self._climb.target if self.cap == math.inf else self.cap
        self.value = max(1, self.least, int(min(allowed, self._ramp, self.most)))
        self.free = max(self.value, int(min(self._climb.target, self._ramp, self.most)))

    def _begin_round(self, now: float) -> None:
        self._window, self._began, self._load = LatencyWindow(), now, 0

    def _end_round(self, now: float) -> None:
        """Move the limit by what the round has shown, unless something else than the target bounded it."""
        ended = Round(self._load / self._window.count, self._window.summarize())
        self.latency = self._window.mean_seconds()
        busy = self.latency * self._window.count / (now - self._began)
        self._begin_round(now)
        if self.cap < math.inf or ended.load < USED * self.value or busy < BUSY * ended.load:
            self._climb.forget_rounds()
        else:
            self._climb.end_round(ended, now)
        self._apply()
