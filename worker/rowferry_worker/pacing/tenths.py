"""What came back in the last moments: successes and refusals, counted by tenths of a second."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

TENTH_SECONDS = 0.1
KEPT_TENTHS = 30


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

    @property
    def last_accepted(self) -> int:
        """Successes of the last tenth that has ended."""
        return self._ended[-1].accepted if self._ended else 0

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
        """Return the successes per second of the last second."""
        seconds, accepted, _ = self.count(now - 1.1)
        return accepted / max(seconds, 1.0)
