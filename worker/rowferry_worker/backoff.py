"""Which migrations this worker leaves alone for now, so that one in trouble does not hold up the others."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock

from rowferry.errors import UsageError
from rowferry_worker.objects.retry import retry_delay

_log = logging.getLogger(__name__)

UNUSABLE_BASE = timedelta(seconds=5)
UNUSABLE_LONGEST = timedelta(minutes=5)
OUTAGE_BASE = timedelta(seconds=0.5)
OUTAGE_LONGEST = timedelta(seconds=30)


@dataclass(slots=True)
class _Trouble:
    """What one migration has met since its last success."""

    outages: int = 0
    faults: int = 0
    """Batches in a row that a fault of a side or table has stopped."""
    setbacks: int = 0
    """How often it was found unusable."""
    until: float = 0.0
    """When to try again, by the clock."""
    mistake: UsageError | None = None
    """Why it cannot be worked on at all; None: nothing is wrong but its servers, or it has rested enough."""


class Backoff:
    """The troubles of each migration, by its id; shared by the slots of a process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """No migration is in trouble yet."""
        self._clock = clock
        self._turn = Lock()
        self._troubles: dict[int, _Trouble] = {}

    def passed_over(self) -> list[int]:
        """Return the ids of the migrations that are to be left alone now."""
        with self._turn:
            return [number for number, trouble in self._troubles.items() if trouble.until > self._clock()]

    def unusable(self) -> dict[int, UsageError]:
        """Return why migrations cannot be worked on here, by id: no success is in sight."""
        with self._turn:
            return {number: trouble.mistake for number, trouble in self._troubles.items() if trouble.mistake}

    def shorten(self, wait: timedelta) -> timedelta:
        """Return `wait`, or less where the rest of a migration is over before."""
        with self._turn:
            ends = [trouble.until for trouble in self._troubles.values() if trouble.until > self._clock()]
            return min([wait, *(timedelta(seconds=end - self._clock()) for end in ends)])

    def set_aside(self, migration_id: int, mistake: UsageError) -> None:
        """Leave a migration alone that cannot be worked on here: 5 s, then twice as long each time, up to 5 min.

        The reason is said once, and again when it is another one.
        """
        with self._turn:
            trouble = self._troubles.setdefault(migration_id, _Trouble())
            if trouble.mistake is None or str(trouble.mistake) != str(mistake):
                fields = {"migration_id": migration_id, "error": str(mistake)}
                _log.error("a migration cannot be worked on here and is set aside; others go on", extra=fields)
            trouble.mistake = mistake
            if trouble.until <= self._clock():
                wait = min(UNUSABLE_BASE * 2 ** min(trouble.setbacks, 16), UNUSABLE_LONGEST)
                trouble.setbacks += 1
                trouble.until = self._clock() + wait.total_seconds()

    def rest(self, migration_id: int) -> None:
        """Leave a migration alone whose servers are busy or away: longer each time, up to 30 s, with jitter."""
        with self._turn:
            trouble = self._troubles.setdefault(migration_id, _Trouble())
            if trouble.until <= self._clock():
                trouble.outages += 1
                wait = retry_delay(trouble.outages, base=OUTAGE_BASE, longest=OUTAGE_LONGEST)
                trouble.until = self._clock() + wait.total_seconds()

    def note_fault(self, migration_id: int) -> int:
        """Count a batch that a fault of its side or table has stopped, rest, and return how many did in a row."""
        with self._turn:
            trouble = self._troubles.setdefault(migration_id, _Trouble())
            trouble.faults += 1
            faults = trouble.faults
        self.rest(migration_id)
        return faults

    def hold_back(self, migration_id: int, wait: timedelta) -> None:
        """Leave a migration alone for a while, though nothing is wrong with it."""
        with self._turn:
            self._troubles.setdefault(migration_id, _Trouble()).until = self._clock() + wait.total_seconds()

    def note_usable(self, migration_id: int) -> None:
        """Note that a migration that was set aside can be worked on after all."""
        with self._turn:
            trouble = self._troubles.get(migration_id)
            if trouble is not None and trouble.mistake is not None:
                del self._troubles[migration_id]
                _log.info("a migration that was set aside goes on", extra={"migration_id": migration_id})

    def note_success(self, migration_id: int) -> None:
        """Forget the troubles of a migration: its servers answer."""
        with self._turn:
            self._troubles.pop(migration_id, None)
