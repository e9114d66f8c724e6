"""Migrations, and single queues of them, that this worker skips for a while: one in trouble holds up no other."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock

from rowferry.batch import Batch
from rowferry.errors import DatabaseBusy, MigrationFault, UsageError
from rowferry.s3.retry import retry_delay
from rowferry_worker.ledger import Ledger
from rowferry_worker.waiting_lines import Line

_log = logging.getLogger(__name__)

UNUSABLE_BASE = timedelta(seconds=5)
UNUSABLE_LONGEST = timedelta(minutes=5)
OUTAGE_BASE = timedelta(seconds=0.5)
OUTAGE_LONGEST = timedelta(seconds=30)

MAX_FAULTS = 3
"""Different batches in a row, of one worker, that a fault must have stopped before the migration is paused. Where fewer
wait, each of them, and so many times in all."""
MAX_PASSING_FAULTS = 10
"""The same for a fault that may pass by itself; with the waits between them that is some two minutes."""


@dataclass(slots=True)
class _Trouble:
    """The trouble of one migration, or of one queue of it, since its last success."""

    outages: int = 0
    faults: int = 0
    """How often in a row a fault of a side or table has stopped a batch."""
    due_since: float | None = None
    """When they were enough to pause the migration, by the clock; None: they are not."""
    stopped: set[int] = field(default_factory=set[int])
    """Those batches, by their ids."""
    setbacks: int = 0
    """How often it was found unusable."""
    until: float = 0.0
    """When to try again, by the clock."""
    error: UsageError | None = None
    """Why it is unusable here; None: it is usable, perhaps after a wait."""


class Backoff:
    """The troubles of each migration, by its id, and of each queue; shared by the slots of a process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = Lock()
        self.troubles: dict[int | Line, _Trouble] = {}
        """By migration, or by its queue; empty while all is well."""

    def passed_over(self) -> list[int | Line]:
        """Return the migrations to skip now, by id, and the queues to skip of others."""
        with self._turn:
            return [known for known, trouble in self.troubles.items() if trouble.until > self._clock()]

    def unusable(self) -> dict[int | Line, UsageError]:
        """Return why migrations, by id, and queues of others are unusable here."""
        with self._turn:
            return {known: trouble.error for known, trouble in self.troubles.items() if trouble.error}

    def shorten(self, wait: timedelta) -> timedelta:
        """Return `wait`, or less where a migration is to be tried again before."""
        with self._turn:
            ends = [trouble.until for trouble in self.troubles.values() if trouble.until > self._clock()]
            return min([wait, *(timedelta(seconds=end - self._clock()) for end in ends)])

    def set_aside(self, migration_id: int, error: UsageError, queue: str | None = None) -> bool:
        """Skip a migration that is unusable here: for 5 s, then twice as long each time, up to 5 min.

        `queue`: only this queue of it. Return whether the reason is new: it is logged once, and again when it changes.
        """
        with self._turn:
            trouble = self.troubles.setdefault(migration_id if queue is None else (migration_id, queue), _Trouble())
            is_new = trouble.error is None or str(trouble.error) != str(error)
            if is_new:
                fields = {"migration_id": migration_id, "error": str(error)}
                if queue is None:
                    _log.error("migration unusable on this worker, skipping it for now", extra=fields)
                else:
                    fields["queue"] = queue
                    _log.error("queue unusable on this worker, skipping it for now", extra=fields)
            trouble.error = error
            if trouble.until <= self._clock():
                wait = min(UNUSABLE_BASE * 2 ** min(trouble.setbacks, 16), UNUSABLE_LONGEST)
                trouble.setbacks += 1
                trouble.until = self._clock() + wait.total_seconds()
        return is_new

    def note_outage(self, migration_id: int) -> None:
        """Skip a migration whose servers are busy or unavailable: longer each time, up to 30 s, with jitter."""
        with self._turn:
            trouble = self.troubles.setdefault(migration_id, _Trouble())
            if trouble.until <= self._clock():
                trouble.outages += 1
                wait = retry_delay(trouble.outages, base=OUTAGE_BASE, longest=OUTAGE_LONGEST)
                trouble.until = self._clock() + wait.total_seconds()

    def note_fault(self, migration_id: int, batch_id: int) -> tuple[int, int]:
        """Count a batch that a fault of its side or table has stopped, and skip its migration for a while.

        Return how often in a row that has happened, and to how many different batches.
        """
        with self._turn:
            trouble = self.troubles.setdefault(migration_id, _Trouble())
            trouble.faults += 1
            trouble.stopped.add(batch_id)
            counted = trouble.faults, len(trouble.stopped)
        self.note_outage(migration_id)
        return counted

    def note_due(self, migration_id: int) -> None:
        """Note that the faults of a migration are enough to pause it."""
        with self._turn:
            trouble = self.troubles.setdefault(migration_id, _Trouble())
            if trouble.due_since is None:
                trouble.due_since = self._clock()

    def due_for(self, migration_id: int) -> timedelta:
        """Return how long the faults of a migration have been enough to pause it; zero where they are not."""
        with self._turn:
            trouble = self.troubles.get(migration_id)
            if trouble is None or trouble.due_since is None:
                return timedelta(0)
            return timedelta(seconds=self._clock() - trouble.due_since)

    def hold_back(self, migration_id: int, wait: timedelta) -> None:
        """Skip a migration for a while, though nothing is wrong with it."""
        with self._turn:
            self.troubles.setdefault(migration_id, _Trouble()).until = self._clock() + wait.total_seconds()

    def note_usable(self, migration_id: int, queue: str | None = None) -> list[str | None]:
        """Forget that a migration, and this queue of it, was unusable here; return what was: None is the migration."""
        forgotten: list[str | None] = []
        with self._turn:
            if self._forget_unusable(migration_id):
                _log.info("migration usable again", extra={"migration_id": migration_id})
                forgotten.append(None)
            if queue is not None and self._forget_unusable((migration_id, queue)):
                _log.info("queue usable again", extra={"migration_id": migration_id, "queue": queue})
                forgotten.append(queue)
        return forgotten

    def _forget_unusable(self, known: int | Line) -> bool:
        trouble = self.troubles.get(known)
        if trouble is None or trouble.error is None:
            return False
        del self.troubles[known]
        return True

    def note_return(self, migration_id: int) -> None:
        """End the wait of a migration whose servers were away: they respond again."""
        with self._turn:
            trouble = self.troubles.get(migration_id)
            if trouble is not None and trouble.error is None:
                trouble.outages, trouble.until = 0, 0.0

    def note_success(self, migration_id: int) -> None:
        """Forget the troubles of a migration: its servers respond."""
        with self._turn:
            self.troubles.pop(migration_id, None)


def pause_after_faults(
    backoff: Backoff, ledger: Ledger, batch: Batch, fault: MigrationFault, *, name: str, waiting: int, others_run: bool
) -> None:
    """Count a batch that a fault of its side or table has stopped; pause its migration after several in a row.

    One batch alone pauses nothing while others wait, and none does while others may succeed that began before.
    `name`: of the migration; `waiting`, `others_run`: as rowferry.judge_fault says.
    """
    migration_id = batch.migration_id
    faults, batches = backoff.note_fault(migration_id, batch.id)
    most = MAX_PASSING_FAULTS if fault.may_pass else MAX_FAULTS
    if faults < most or batches < min(most, waiting):
        return
    if others_run:
        backoff.note_due(migration_id)
        return
    reason = str(fault).rstrip(".")
    try:
        (row,) = ledger.call("pause_migration", migration_id, f"{reason[0].upper()}{reason[1:]}.")
    except DatabaseBusy as error:
        _log.warning("could not pause the migration yet", extra={"error": str(error)})
        return
    except UsageError:  # the database's encoding may lack what a server has said
        backoff.set_aside(migration_id, UsageError(str(fault)))
        return
    backoff.note_success(migration_id)
    if row["pause_migration"]:
        fields = {
            "migration": name,
            "error": reason,
            "next": f"fix that, then run `rowferry resume --migration {name}`",
        }
        _log.error("migration paused: none of its batches can be processed", extra=fields)
