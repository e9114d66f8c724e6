"""The passes of a run: enqueue, let this host's workers empty the queue, repeat until nothing is found."""

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from rowferry.db.connection import Connection
from rowferry.db.statements import statement
from rowferry.errors import RowferryError
from rowferry.formatting import count, count_entries, show_text
from rowferry.plan import Plan
from rowferry_cli.log_file import LogFile
from rowferry_cli.messages import INTERRUPTED
from rowferry_cli.migrate.chain import Chain, ChainCounts
from rowferry_cli.migrate.lost_workers import LostWorkers
from rowferry_cli.migrate.vain import Passes
from rowferry_cli.migrate.workers import LocalWorkers, WorkersElsewhere, of_migration
from rowferry_cli.options import MAX_PROCESSES, WorkerOptions
from rowferry_cli.reporter import Reporter
from rowferry_cli.status.standby import describe_standby_wait
from rowferry_cli.throughput import Throughput
from rowferry_enqueue.enqueue import Enqueued, EnqueueRequest, enqueue
from rowferry_worker.machine import choose_processes, log_machine
from rowferry_worker.supervisor.supervisor import bound_processes

_log = logging.getLogger(__name__)

POLL_INTERVAL = timedelta(seconds=0.5)
RESTARTS = 10
"""How many workers may die before a run is given up: a batch that kills workers is in ERROR long before."""


Workers = LocalWorkers | WorkersElsewhere


@dataclass(frozen=True, slots=True)
class Run:
    """One run: all passes of `rowferry migrate`, or the one pass of another queue; and the queues that follow it."""

    connection: Connection
    plan: Plan
    request: EnqueueRequest
    options: WorkerOptions
    reporter: Reporter
    log: LogFile
    verbose: bool = False

    @property
    def chain(self) -> Chain:
        """The queue of the run, and those that it leads to."""
        return Chain(self.connection, self.plan, self.request.queue)

    def all_passes(self) -> list[Throughput]:
        """Run passes until one finds nothing, and return the counts since the start, by queue.

        A limited run makes one pass, and so does any run over entries whose rows stay. Raises RowferryError when the
        workers cannot go on, PassInVain when they do not find entries that pass after pass finds.
        """
        with self._reported():
            started, passes = time.monotonic(), Passes(self.connection, self.plan, self.request.queue.name)
            passes.begin()
            number, (tables, before) = 1, self._begin()
            found = count_added(tables)
            waiting = self.chain.read().waiting
            if found or waiting:
                with self.workers() as workers:
                    while found or waiting:
                        self._empty_queue(workers, before, started)
                        if self.request.limit is not None or self._is_paused_by_workers():
                            break
                        passes.begin()
                        number += 1
                        tables = self._enqueue(number)
                        passes.check(count_entries_of(tables))
                        found, waiting = count_added(tables), []
            return self._measure(before, started)

    def one_pass(self) -> list[Throughput]:
        """Run one pass and return the counts since its start, by queue, including those of workers elsewhere.

        Raises RowferryError when the workers cannot go on.
        """
        with self._reported():
            started = time.monotonic()
            _, before = self._begin()
            if before.waiting:
                with self.workers() as workers:
                    self._empty_queue(workers, before, started)
            return self._measure(before, started)

    def next_pass(self, workers: Workers, number: int) -> tuple[Throughput, list[Enqueued]]:
        """Let workers that run make one pass, and go on with entries that move as long as fewer and fewer are found.

        An application that writes legacy rows all the time leaves some to the next pass. Return the counts since its
        start and what it has enqueued first. Raises RowferryError when the workers cannot go on.
        """
        with self._reported():
            started = time.monotonic()
            tables, before = self._begin(number)
            self._empty_queue(workers, before, started, follow=False)
            found, more = tables, self._enqueue_again()
            while count_added(more):
                self._empty_queue(workers, before, started, follow=False)
                if count_entries_of(more) >= count_entries_of(found):
                    break
                found, more = more, self._enqueue_again()
            return self._measure(before, started)[0], tables

    def follow_chain(self, workers: Workers) -> None:
        """Let workers that run empty the queues that follow. Raises RowferryError when they cannot go on."""
        with self._reported():
            self._empty_queue(workers, self.chain.read(), time.monotonic())

    def _begin(self, shown_number: int = 1) -> tuple[list[Enqueued], ChainCounts]:
        """Make a first pass; return what it added, and the counts that precede all its work.

        They are read before the pass is committed, so that no worker sees its batches. A pass that takes up batches in
        ERROR again takes back what was counted of them, so the counts before it would be no beginning.
        """
        before: list[ChainCounts] = []
        tables = self._enqueue(1, shown_number, on_added=lambda: before.append(self.chain.read()))
        return tables, before[0]

    def _enqueue_again(self) -> list[Enqueued]:
        """Enqueue what has appeared meanwhile, unless workers have paused the migration."""
        return [] if self._is_paused_by_workers() else self._enqueue(2)

    @contextmanager
    def _reported(self) -> Generator[None]:
        """Show progress during the block, and report how it was interrupted."""
        try:
            with self.reporter.live_progress():
                yield
        except KeyboardInterrupt:
            self.reporter.print(INTERRUPTED)
            raise click.exceptions.Abort from None
        except RowferryError as error:
            _log.error("%s", error)
            self.reporter.print(f"Log: {self.log.path}")
            raise

    def workers(self) -> Workers:
        """Return the workers of this host, which run within a `with` block, or those elsewhere."""
        if self.options.processes == 0:
            return WorkersElsewhere(self.connection, self.chain.list_names())
        queues = [argument for name in self.chain.list_names() for argument in ("--queue", name)]
        options = [*of_migration(self.plan.name), *queues]
        options += [f"--parallel={self.options.parallel}"] if self.options.parallel else []
        options += ["--verbose"] if self.verbose else []
        wanted = self.options.processes or min(choose_processes(), MAX_PROCESSES)
        processes = bound_processes(self.connection, wanted)
        if processes < wanted:
            self.reporter.print(f"Workers: {processes} of {wanted}, as many as PostgreSQL's connections allow.")
        log_machine(processes)
        return LocalWorkers(processes, options, self.log, self._show_line)

    def _show_line(self, line: str) -> None:
        if self.verbose:
            self.reporter.console.print(show_text(line), markup=False, soft_wrap=True)

    def _enqueue(
        self, number: int, shown_number: int | None = None, on_added: Callable[[], None] = lambda: None
    ) -> list[Enqueued]:
        """Make one pass, the `number`-th of this run, and return what it added; `on_added`: as of enqueue."""
        with self.reporter.show_activity("looking for entries to enqueue"):
            tables = enqueue(self.connection, self.plan, replace(self.request, is_first=number == 1), on_added)
        batches, entries = count_added(tables), count_entries_of(tables)
        if batches or number == 1:
            listings = "".join(f", {table}" for table in tables if table.is_listing and table.batches)
            new = count(batches, "new batch", "new batches")
            self.reporter.print(f"Pass {shown_number or number}: {count_entries(entries)} in {new}{listings}")
        for table in tables:
            if table.goes_on:
                self.reporter.print(f"{table.label}: the pass before has not ended; it goes on.")
        return tables

    def _empty_queue(self, workers: Workers, before: ChainCounts, started: float, *, follow: bool = True) -> None:
        """Wait until no batch is INIT or workers have paused the migration; replace workers that die.

        `follow`: in this queue and all that it leads to.
        """
        restarts, lost = 0, LostWorkers(self.connection, self.plan.name)
        while True:
            restarts += workers.replace_dead()
            asked = time.monotonic()
            now = self.chain.read()
            for happened in lost.look(workers.dead_pids):
                self.reporter.print(happened)
            reading_seconds = time.monotonic() - asked
            waits = describe_standby_wait(self.connection) or lost.waits
            self.reporter.report(self._measure(before, started, now), waits)
            left = now.waiting if follow else [name for name in now.waiting if name == self.request.queue.name]
            if not left or self._is_paused_by_workers():
                return
            if workers.ended_by_mistake or restarts > RESTARTS:
                raise RowferryError(f"The workers cannot go on: {workers.last_words.removeprefix('rowferry: ')}")
            # Counting a long queue takes long: spend at most a tenth of the time on it.
            time.sleep(max(POLL_INTERVAL.total_seconds(), 9 * reading_seconds))

    def _is_paused_by_workers(self) -> bool:
        """Return whether workers have paused the migration, which only a person resumes."""
        row = self.connection.execute(statement("find_migration"), {"name": self.plan.name}).fetchone()
        return row is not None and row["paused_by_worker"]

    def _measure(self, before: ChainCounts, started: float, now: ChainCounts | None = None) -> list[Throughput]:
        """Return what was done since `before`; `now`: None reads it."""
        now = now or self.chain.read()
        return list(self.chain.measure(now, before, timedelta(seconds=time.monotonic() - started)))


def count_added(tables: Iterable[Enqueued]) -> int:
    """Return how many batches a pass added."""
    return sum(table.batches for table in tables)


def count_entries_of(tables: Iterable[Enqueued]) -> int:
    """Return how many entries a pass added."""
    return sum(table.entries for table in tables)


def name_log(plan: Plan, request: EnqueueRequest) -> Path:
    """Return the name of a new log file in this folder."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return Path(f"rowferry-{plan.name}-{request.queue.name}-{moment}-{os.getpid()}.log")
