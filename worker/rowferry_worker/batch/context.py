"""What a queue is given to do its work with."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event

import psycopg

from rowferry.batch import Attempt, Batch, Entry
from rowferry.db.connection import Connection
from rowferry.db.statements import statement
from rowferry.db.timeouts import has_spoken, show_life_every
from rowferry.errors import RowferryError
from rowferry_worker.migration import Route
from rowferry_worker.monitoring import metrics
from rowferry_worker.objects.scheduler import Flight, Load

LOOK_UP_EVERY = timedelta(seconds=0.25)
RECALL_EVERY = timedelta(seconds=0.05)
TAKE_BACK_WITHIN = timedelta(seconds=3)
"""How long the uploads that a batch has begun have to be aborted once the worker gives it up, or has lost it."""


class Released(RowferryError):
    """The worker was told to stop now: the batch is given back as it was found."""

    retryable = True
    costs_attempt = False


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed batch, and everything a queue may use; the connection is inside the claim's transaction."""

    batch: Batch
    attempt: Attempt
    connection: Connection
    route: Route
    flight: Flight
    give_up: Event
    until: float = math.inf
    """The end of the batch's time budget, by time.monotonic()."""
    begun: list[Entry] = field(default_factory=list[Entry])
    rest: list[Entry] = field(default_factory=list[Entry])
    """Entries, the last of the range, that the queue leaves for a batch of their own: `process` puts them back."""

    def leave_unbegun(self, entries: list[Entry], begun: Callable[[Entry], bool]) -> list[Entry]:
        """Return the entries up to the first that was not begun; that one and all behind it are left for later."""
        cut = next((index for index, entry in enumerate(entries) if not begun(entry)), len(entries))
        self.begun.extend(entries[:cut])
        self.rest.extend(entries[cut:])
        return entries[:cut]

    def pause(self, wait: timedelta) -> None:
        """Wait for a turn. Raises Released when the worker gives up meanwhile."""
        if wait:
            metrics.held_up_seconds.labels("max_rows_per_second").inc(wait.total_seconds())
        end, shown_at = time.monotonic() + wait.total_seconds(), time.monotonic()
        while (left := end - time.monotonic()) > 0 or self.give_up.is_set():
            if self.give_up.wait(min(left, LOOK_UP_EVERY.total_seconds())):
                raise Released("the worker was told to stop")
            shown_at = self._keep_alive(shown_at)

    def wait_for(self, load: Load) -> None:
        """Wait until the journeys of a load have ended; past the time budget no more of them begin.

        Those that did not begin end as Withdrawn. Raises Released when the worker gives up meanwhile.
        """
        withdrawn, shown_at = False, time.monotonic()
        while not load.wait(LOOK_UP_EVERY):
            self.route.look_out()
            if self.give_up.is_set():
                self._recall(load)
                raise Released("the worker was told to stop")
            if not withdrawn and time.monotonic() >= self.until:
                self.flight.withdraw(load)
                withdrawn = True
            try:
                shown_at = self._keep_alive(shown_at)
            except psycopg.Error:
                self._recall(load)
                raise

    def _recall(self, load: Load) -> None:
        """Stop the copies of a batch that is lost or given back: its rows may name the objects by now."""
        self.flight.withdraw(load)
        load.is_recalled = True
        end = time.monotonic() + TAKE_BACK_WITHIN.total_seconds()
        while not load.done.is_set() and time.monotonic() < end:
            self.route.cancel(load.under_way())
            load.done.wait(RECALL_EVERY.total_seconds())

    def _keep_alive(self, shown_at: float) -> float:
        """Show PostgreSQL now and then that the transaction is alive; return when it was shown last.

        Raises the error of a lost connection: as soon as the server has said so, better than after the last object.
        """
        is_due = time.monotonic() - shown_at >= show_life_every().total_seconds()
        if not is_due and not has_spoken(self.connection):
            return shown_at
        self.connection.execute(statement("keep_alive"))
        return time.monotonic()
