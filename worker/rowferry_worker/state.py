"""State shared by the slots of one worker process."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Event

from rowferry.batch import Batch
from rowferry_worker.attempts import AttemptRecorder
from rowferry_worker.backoff import Backoff
from rowferry_worker.claim_turns import LOOK_UP_SECONDS, ClaimTurns
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.monitoring.heartbeat import ClusterState, WorkerReport
from rowferry_worker.options import Options
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.service import MAX_TURN, SlotWatchdog
from rowferry_worker.waiting_lines import Line, WaitingLines


class BatchProgress:
    """Counts the objects of one batch whose work has ended well. Used by the batch's slot and by the event loop."""

    def __init__(self) -> None:
        self.entries = 0
        """Those that the attempt has read."""
        self._objects = 0
        self._ended = 0
        self._most = 0

    def expect(self, objects: int) -> None:
        """Note that so many objects are about to be worked on."""
        self._objects += objects

    def note_end(self, objects: int = 1) -> None:
        """Note that the work on so many of them has ended well."""
        self._ended += objects

    def count(self) -> int:
        """Return the entries that are settled so far: never less than before, though more objects may be expected.

        Entries may have several objects, or share one: each object stands for its part of the entries.
        """
        if self._objects:
            self._most = max(self._most, self.entries * self._ended // self._objects)
        return self._most


class BatchLock:
    """Batches share it; one that may kill its worker holds it alone: its crash then counts against no other."""

    def __init__(self) -> None:
        self._changed = Condition()
        self.holders = 0
        """How many batches hold it now."""
        self._is_alone = False
        self._waiting_alone = 0

    @contextmanager
    def hold(self, *, alone: bool, unless: Event) -> Generator[bool]:
        """Wait for the lock and hold it in the block; yield False, without the lock, once `unless` is set.

        Who waits to hold it alone goes first.
        """
        with self._changed:
            self._waiting_alone += alone
            while not (acquired := self._is_free(alone=alone)) and not unless.is_set():
                self._changed.wait(LOOK_UP_SECONDS)
            self._waiting_alone -= alone
            self.holders += acquired
            self._is_alone = self._is_alone or (acquired and alone)
            self._changed.notify_all()
        try:
            yield acquired
        finally:
            if acquired:
                self._release()

    def is_wanted_alone(self) -> bool:
        """Return whether a batch holds the lock alone, or waits to."""
        return self._is_alone or self._waiting_alone > 0

    def keep_alone(self) -> bool:
        """Let no other hold it beside the caller, if none does now; return whether the caller is alone."""
        with self._changed:
            self._is_alone = self._is_alone or self.holders == 1
            return self._is_alone

    def _is_free(self, *, alone: bool) -> bool:
        return self.holders == 0 if alone else not self.is_wanted_alone()

    def _release(self) -> None:
        with self._changed:
            self.holders -= 1
            self._is_alone = False
            self._changed.notify_all()


@dataclass(slots=True)
class WorkerState:
    """State shared by the slots of one worker process."""

    worker_id: str
    queues: list[str]
    ledger: Ledger
    migration_contexts: MigrationContextCache
    scheduler: CopyScheduler
    options: Options = field(default_factory=Options)
    stopping: Event = field(default_factory=Event)
    """Set: claim no more batches."""
    give_up: Event = field(default_factory=Event)
    """Set: release the claimed batches now."""
    reason: Exception | None = None
    """Why this worker cannot go on: wrong settings, or an unexpected error."""
    watchdog: SlotWatchdog = field(default_factory=SlotWatchdog)
    backoff: Backoff = field(default_factory=Backoff)
    batch_lock: BatchLock = field(default_factory=BatchLock)
    moving: dict[int, Batch] = field(default_factory=dict[int, Batch])
    """The claimed batches whose rows will be updated, by id."""
    in_hand: dict[int, BatchProgress] = field(default_factory=dict[int, BatchProgress])
    """How far the claimed batches are, by attempt."""
    attempts: AttemptRecorder = field(init=False)
    turns: ClaimTurns = field(default_factory=ClaimTurns)
    lines: WaitingLines = field(default_factory=WaitingLines)
    cluster: ClusterState = field(default_factory=ClusterState)

    def __post_init__(self) -> None:
        """Let the slots share the ledger, and learn when servers are back."""
        self.attempts = AttemptRecorder(self.ledger, self.worker_id)
        self.migration_contexts.on_return = self._note_return

    def passed_over(self) -> list[int | Line]:
        """Return the migrations to claim no batch of now, by id, and single queues of others."""
        contexts = self.migration_contexts
        moving = list(self.moving.values())  # at once: batches of other slots end meanwhile
        return [*self.backoff.passed_over(), *contexts.away(), *contexts.at_row_bound(moving)]

    def _note_return(self, migration_id: int) -> None:
        """Go on with a migration at once: its servers are back."""
        self.backoff.note_return(migration_id)
        self.turns.note_end()

    def wait_until_wanted(self, seconds: float) -> bool:
        """Return whether another batch is wanted, as soon as it is, at the latest after so many seconds.

        None is wanted while a batch runs alone, or waits to: it would be claimed and wait.
        """
        if self.batch_lock.is_wanted_alone():
            self.stopping.wait(seconds)
            return False
        return self.scheduler.claimed_entries.wait_for_room(seconds)

    def report(self) -> WorkerReport:
        """Return what the heartbeat says of this worker."""
        return WorkerReport(self.batch_lock.holders, self.scheduler.limit.value, self.scheduler.request_rates)

    def count_in_hand(self) -> dict[int, int]:
        """Return the entries that are settled so far in each claimed batch that has any, by attempt."""
        found = {attempt: progress.count() for attempt, progress in list(self.in_hand.items())}
        return {attempt: entries for attempt, entries in found.items() if entries}

    def is_progressing(self) -> bool:
        """Return whether each slot began a turn, or an S3 response came, within MAX_TURN."""
        earliest = time.monotonic() - MAX_TURN.total_seconds()
        return self.watchdog.is_progressing() or self.scheduler.responded_at >= earliest

    def stop_for(self, reason: Exception) -> None:
        """Stop claiming, for a reason that `run_worker` will raise."""
        self.reason = self.reason or reason
        self.stopping.set()
