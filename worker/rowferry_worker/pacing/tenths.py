"""What came back in the last moments: successes and refusals, counted by tenths of a second."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

TENTH_SECONDS = 0.1
KEPT_TENTHS = 80
FEW, FEW_SECONDS = 10, 5.0
"""So few successes of a second tell little of a rate; then so many seconds are looked at."""

LOW, LOW_SECONDS = 0.6, 5.0
"""A rate of which less is used for so long is not what limits the pace, and is let go."""
LOW_LEAST_SECONDS, LOW_LEAST = 0.25, 5
"""Seconds, and requests that the rate allows in them, that tell how much is used."""


class Tenth(NamedTuple):
    """What came back in a moment."""

    ended: float
    seconds: float
    accepted: int
    refused: int


@dataclass(slots=True)
class Tenths:
    """The present tenth of a second, and the last ones."""

    began: float
    accepted: int = 0
    refused: int = 0
    _ended: deque[Tenth] = field(default_factory=lambda: deque[Tenth](maxlen=KEPT_TENTHS))

    def end(self, now: float) -> Tenth:
        """End the present tenth and return it."""
        tenth = Tenth(now, max(1e-6, now - self.began), self.accepted, self.refused)
        self._ended.append(tenth)
        self.began, self.accepted, self.refused = now, 0, 0
        return tenth

    def count(self, since: float) -> tuple[float, int, int]:
        """Return the seconds, successes and refusals of the tenths that began at `since` or later."""
        seconds, accepted, refused = 0.0, 0, 0
        for tenth in reversed(self._ended):
            if tenth.ended - tenth.seconds < since - 1e-9:
                break
            seconds += tenth.seconds
            accepted += tenth.accepted
            refused += tenth.refused
        return seconds, accepted, refused

    def accepted_per_second(self, now: float) -> float:
        """Return the successes per second of the last second; of more where there are few."""
        seconds, accepted, _ = self.count(now - 1.1)
        if accepted < FEW:
            seconds, accepted, _ = self.count(now - FEW_SECONDS)
        return accepted / max(seconds, 1.0)


@dataclass(slots=True)
class Use:
    """Whether a rate is used, or something else limits the pace."""

    _low_since: float | None = None

    def begin(self) -> None:
        """Forget what was seen at another rate."""
        self._low_since = None

    @property
    def is_low(self) -> bool:
        """Whether much less is sent than the rate allows."""
        return self._low_since is not None

    def is_over(self, now: float, rate: float, seconds: float, count: int) -> bool:
        """Return whether that has lasted long; `count` requests came back in so many seconds."""
        if seconds < LOW_LEAST_SECONDS or rate * seconds < LOW_LEAST or count >= LOW * rate * seconds:
            self._low_since = None
            return False
        self._low_since = self._low_since or now
        return now - self._low_since > LOW_SECONDS
