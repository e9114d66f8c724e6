"""What the slots of one worker process share: queues, ledger, routes, the flight, and the word to stop."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Condition, Event, Lock

from rowferry_worker.backoff import Backoff
from rowferry_worker.batch.ledger import Ledger
from rowferry_worker.migration import Routes
from rowferry_worker.objects.scheduler import Flight
from rowferry_worker.service import LONGEST_TURN, Pulse

LOOK_UP_SECONDS = 0.25


class Company:
    """Who is at work in this process. Otherwise a crash would count against all the batches that it took along."""

    def __init__(self) -> None:
        """Nobody is at work yet."""
        self._change = Condition()
        self._present = 0
        self._alone = False
        self._waiting_alone = 0

    @contextmanager
    def joined(self, *, alone: bool, unless: Event) -> Generator[bool]:
        """Wait until there is room; yield whether there was, before `unless` was set. The end of the block leaves."""
        if not self._join(unless, alone=alone):
            yield False
            return
        try:
            yield True
        finally:
            self._leave()

    def stay_alone(self) -> bool:
        """Return whether the caller, who has joined, is alone, and from now on stays so until it leaves."""
        with self._change:
            self._alone = self._alone or self._present == 1
            return self._alone

    def _join(self, unless: Event, *, alone: bool) -> bool:
        with self._change:
            self._waiting_alone += alone
            try:
                while not self._has_room(alone=alone):
                    if unless.is_set():
                        return False
                    self._change.wait(LOOK_UP_SECONDS)
            finally:
                self._waiting_alone -= alone
                self._change.notify_all()
            self._present += 1
            self._alone = alone
            return True

    def _has_room(self, *, alone: bool) -> bool:
        """Return whether one more may join; who wants to be alone goes before who does not."""
        if alone:
            return self._present == 0
        return not self._alone and not self._waiting_alone

    def _leave(self) -> None:
        with self._change:
            self._present -= 1
            self._alone = False
            self._change.notify_all()


@dataclass(slots=True)
class Shared:
    """What the slots of one worker process share."""

    worker_id: str
    queues: list[str]
    ledger: Ledger
    routes: Routes
    flight: Flight
    until_empty: bool = False
    time_budget: timedelta = timedelta(seconds=20)
    """How long a batch may take before what is not begun of it goes back."""
    migrations: list[str] | None = None
    """The names of those to serve; None: all."""
    end_when_unusable: bool = False
    """Whether the worker ends where a migration cannot be worked on here, instead of setting it aside."""
    stopping: Event = field(default_factory=Event)
    """Set: claim nothing more."""
    give_up: Event = field(default_factory=Event)
    """Set: give back what is in hand."""
    reason: Exception | None = None
    """Why this worker cannot go on: its settings are wrong, or it has a fault of its own."""
    pulse: Pulse = field(default_factory=Pulse)
    backoff: Backoff = field(default_factory=Backoff)
    company: Company = field(default_factory=Company)
    slots: int = 1
    """How many have not left for want of connections."""
    _leaving: Lock = field(default_factory=Lock)

    def leave_room(self) -> bool:
        """Return whether a slot may stay away because PgBouncer's pool is too small for all: one at least goes on."""
        with self._leaving:
            may_end = self.slots > 1
            self.slots -= may_end
            return may_end

    def come_back(self) -> None:
        """Say that a slot that has left works again."""
        with self._leaving:
            self.slots += 1

    def is_steady(self) -> bool:
        """Return whether each slot began a turn, or S3 answered one of them, within LONGEST_TURN."""
        earliest = time.monotonic() - LONGEST_TURN.total_seconds()
        return self.pulse.is_steady() or self.flight.stepped_at >= earliest

    def stop_for(self, reason: Exception) -> None:
        """Stop claiming, for a reason that `run_worker` will raise."""
        self.reason = self.reason or reason
        self.stopping.set()
