"""The passes of a run: enqueue, let the workers empty the queue, and again, until a pass finds nothing."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import RowferryError
from rowferry.plan import Plan
from rowferry.reports.progress import Counts, Pace, read_counts
from rowferry_cli.run.local_workers import LocalWorkers
from rowferry_enqueue.enqueue import Request, enqueue

LOOK_EVERY = timedelta(seconds=0.5)
RESTARTS = 10
"""How many workers may die before a run is given up: a batch that kills workers is in ERROR long before."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of `rowferry migrate`, from its first pass to its last; or the one pass of `verify` or `revert`."""

    connection: Connection
    plan: Plan
    request: Request
    workers: Callable[[], LocalWorkers]
    on_pass: Callable[[int, int, int], None]
    """Told of each pass: its number, its entries, its batches."""
    on_progress: Callable[[Pace], None]

    def passes(self, before: Counts) -> Pace:
        """Run passes until one finds nothing to do, and return what has come about since `before`.

        A limited run makes one pass. Raises RowferryError when the workers cannot go on.
        """
        began = time.monotonic()
        number, found = 1, self._enqueue(1)
        waiting = self._read_counts().batches_init
        if found or waiting:
            with self.workers() as workers:
                while found or waiting:
                    self._empty_queue(workers, before, began)
                    if self.request.limit is not None or self._is_stopped():
                        break
                    number += 1
                    found, waiting = self._enqueue(number), 0
        return self._pace(before, began)

    def once(self) -> Pace:
        """Make one pass and return what has come about, whoever's workers did it.

        Raises RowferryError when the workers cannot go on.
        """
        began = time.monotonic()
        with translated_errors(), self.connection.transaction():
            self._enqueue(1)
            # Nobody has worked on the new pass before this is committed: what is counted here was there before.
            before = self._read_counts()
        if before.batches_init:
            with self.workers() as workers:
                self._empty_queue(workers, before, began)
        return self._pace(before, began)

    def _enqueue(self, number: int) -> int:
        """Make one pass and return how many batches it added."""
        tables = enqueue(self.connection, self.plan, self.request)
        batches, entries = sum(table.batches for table in tables), sum(table.entries for table in tables)
        if batches or number == 1:
            self.on_pass(number, entries, batches)
        return batches

    def _empty_queue(self, workers: LocalWorkers, before: Counts, began: float) -> None:
        """Wait until no batch is INIT, or workers have paused the migration; those that die are replaced."""
        restarts = 0
        while True:
            asked = time.monotonic()
            pace = self._pace(before, began)
            reading_seconds = time.monotonic() - asked
            self.on_progress(pace)
            if pace.counts.batches_init == 0 or self._is_stopped():
                return
            if workers.ended_by_mistake or restarts > RESTARTS:
                raise RowferryError(f"The workers cannot go on: {workers.last_words.removeprefix('rowferry: ')}")
            restarts += workers.replace_dead()
            # A long queue takes long to count: no more than a tenth of the time goes into that.
            time.sleep(max(LOOK_EVERY.total_seconds(), 9 * reading_seconds))

    def _is_stopped(self) -> bool:
        """Return whether workers have paused the migration: without a person it does not go on."""
        row = self.connection.execute(statement("find_migration"), {"name": self.plan.name}).fetchone()
        return row is not None and row["pause_reason"] is not None

    def _pace(self, before: Counts, began: float) -> Pace:
        counts = self._read_counts().since(before)
        return Pace(counts, timedelta(seconds=time.monotonic() - began), self.request.queue)

    def _read_counts(self) -> Counts:
        return read_counts(self.connection, self.plan.name, self.request.queue)
