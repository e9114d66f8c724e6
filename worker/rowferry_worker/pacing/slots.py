"""What came back in the last moments: successes and refusals, counted by slots of a tenth of a second."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

SLOT_SECONDS = 0.1
KEPT_SLOTS = 30


class Slot(NamedTuple):
    """What came back in a moment."""

    ended: float
    seconds: float
    accepted: int
    refused: int


@dataclass(slots=True)
class Slots:
    """The present slot, and the last ones."""

    began: float
    accepted: int = 0
    refused: int = 0
    _ended: deque[Slot] = field(default_factory=lambda: deque[Slot](maxlen=KEPT_SLOTS))

    def end(self, now: float) -> Slot:
        """End the present slot and return it."""
        slot = Slot(now, max(1e-6, now - self.began), self.accepted, self.refused)
        self._ended.append(slot)
        self.began, self.accepted, self.refused = now, 0, 0
        return slot

    @property
    def last_accepted(self) -> int:
        """Successes of the last slot that has ended."""
        return self._ended[-1].accepted if self._ended else 0

    def count(self, since: float) -> tuple[float, int, int]:
        """Return the seconds, successes and refusals of the slots that began at `since` or later."""
        seconds, accepted, refused = 0.0, 0, 0
        for slot in reversed(self._ended):
            if slot.ended - slot.seconds < since - 1e-9:
                break
            seconds += slot.seconds
            accepted += slot.accepted
            refused += slot.refused
        return seconds, accepted, refused

    def accepted_per_second(self, now: float) -> float:
        """Return the successes per second of the last second."""
        seconds, accepted, _ = self.count(now - 1.1)
        return accepted / max(seconds, 1.0)
