"""What the slots of one worker process share: queues, ledger, routes, the flight, and the word to stop."""

import time
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Lock

from rowferry_worker.backoff import Backoff
from rowferry_worker.company import Company
from rowferry_worker.flight import Flight
from rowferry_worker.ledger import Ledger
from rowferry_worker.notify import LONGEST_TURN, Pulse
from rowferry_worker.route import Routes


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
