"""The passes of a run: enqueue, let this host's workers empty the queue, repeat until nothing is found."""

import logging
import os
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import RowferryError
from rowferry.formatting import count, count_entries, show_text
from rowferry.logs import LogFile, log_to_file
from rowferry.plan import Plan
from rowferry.reports.pause import find_pause
from rowferry.reports.progress import Counts, Throughput, read_counts
from rowferry_cli.messages import INTERRUPTED, describe_enqueued, describe_pause
from rowferry_cli.options import MAX_PROCESSES, WorkerOptions
from rowferry_cli.run.local_workers import LocalWorkers, of_migration
from rowferry_cli.run.reporter import Reporter
from rowferry_cli.run.workers_elsewhere import WorkersElsewhere
from rowferry_enqueue.enqueue import Enqueued, Request, enqueue
from rowferry_worker.machine import choose_processes, log_machine

_log = logging.getLogger(__name__)

POLL_INTERVAL = timedelta(seconds=0.5)
RESTARTS = 10
"""How many workers may die before a run is given up: a batch that kills workers is in ERROR long before."""


Workers = LocalWorkers | WorkersElsewhere


@dataclass(frozen=True, slots=True)
class Run:
    """One run: all passes of `rowferry migrate`, or the one pass of another queue."""

    connection: Connection
    plan: Plan
    request: Request
    options: WorkerOptions
    reporter: Reporter
    log: LogFile
    verbose: bool = False

    def all_passes(self) -> Throughput:
        """Run passes until one finds nothing, and return the counts since the start.

        A limited run makes one pass, and so does any run over entries whose rows stay. Raises RowferryError when the
        workers cannot go on.
        """
        with self._reported():
            started = time.monotonic()
            number, (found, before) = 1, self._begin()
            waiting = self._read_counts().batches_init
            if found or waiting:
                with self.workers() as workers:
                    while found or waiting:
                        self._empty_queue(workers, before, started)
                        if self.request.limit is not None or self._is_paused_by_workers():
                            break
                        number += 1
                        found, waiting = count_added(self._enqueue(number)), 0
            return self._measure(before, started)

    def one_pass(self) -> Throughput:
        """Run one pass and return the counts since its start, including those of workers elsewhere.

        Raises RowferryError when the workers cannot go on.
        """
        with self._reported():
            started = time.monotonic()
            _, before = self._enqueue_unseen(1)
            if before.batches_init:
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
            tables, before = self._enqueue_unseen(number)
            self._empty_queue(workers, before, started)
            found, more = tables, self._enqueue_again()
            while count_added(more):
                self._empty_queue(workers, before, started)
                if count_entries_of(more) >= count_entries_of(found):
                    break
                found, more = more, self._enqueue_again()
            return self._measure(before, started), tables

    def _begin(self) -> tuple[int, Counts]:
        """Make the first of all passes; return how many batches it added, and the counts that precede all its work."""
        if self.plan.copies_alone:
            tables, before = self._enqueue_unseen(1)
            return count_added(tables), before
        before = self._read_counts()
        return count_added(self._enqueue(1)), before

    def _enqueue_unseen(self, shown_number: int) -> tuple[list[Enqueued], Counts]:
        """Make a first pass; return what it added, and the counts that precede all its work.

        No worker sees the new batches before the commit. A pass that takes up batches in ERROR again takes back what
        was counted of them, so the counts before it would be no beginning.
        """
        with translated_errors(), self.connection.transaction():
            tables = self._enqueue(1, shown_number)
            return tables, self._read_counts()

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
            return WorkersElsewhere(self.connection, self.request.queue.name)
        options = [*of_migration(self.plan.name), "--queue", self.request.queue.name]
        options += [f"--parallel={self.options.parallel}"] if self.options.parallel else []
        options += ["--verbose"] if self.verbose else []
        processes = self.options.processes or min(choose_processes(), MAX_PROCESSES)
        log_machine(processes)
        return LocalWorkers(processes, options, self.log, self._show_line)

    def _show_line(self, line: str) -> None:
        if self.verbose:
            self.reporter.console.print(show_text(line), markup=False, soft_wrap=True)

    def _enqueue(self, number: int, shown_number: int | None = None) -> list[Enqueued]:
        """Make one pass, the `number`-th of this run, and return what it added."""
        tables = enqueue(self.connection, self.plan, replace(self.request, is_first=number == 1))
        batches, entries = count_added(tables), count_entries_of(tables)
        if batches or number == 1:
            listings = "".join(f", {table}" for table in tables if table.is_listing and table.batches)
            new = count(batches, "new batch", "new batches")
            self.reporter.print(f"Pass {shown_number or number}: {count_entries(entries)} in {new}{listings}")
        for table in tables:
            if table.goes_on:
                self.reporter.print(f"{table.label}: the pass before has not ended; it goes on.")
        return tables

    def _empty_queue(self, workers: Workers, before: Counts, started: float) -> None:
        """Wait until no batch is INIT or workers have paused the migration; replace workers that die."""
        restarts = 0
        while True:
            asked = time.monotonic()
            throughput = self._measure(before, started)
            reading_seconds = time.monotonic() - asked
            self.reporter.report(throughput)
            if throughput.counts.batches_init == 0 or self._is_paused_by_workers():
                return
            if workers.ended_by_mistake or restarts > RESTARTS:
                raise RowferryError(f"The workers cannot go on: {workers.last_words.removeprefix('rowferry: ')}")
            restarts += workers.replace_dead()
            # Counting a long queue takes long: spend at most a tenth of the time on it.
            time.sleep(max(POLL_INTERVAL.total_seconds(), 9 * reading_seconds))

    def _is_paused_by_workers(self) -> bool:
        """Return whether workers have paused the migration, which only a person resumes."""
        row = self.connection.execute(statement("find_migration"), {"name": self.plan.name}).fetchone()
        return row is not None and row["pause_reason"] is not None

    def _measure(self, before: Counts, started: float) -> Throughput:
        counts = self._read_counts().since(before)
        elapsed = timedelta(seconds=time.monotonic() - started)
        return Throughput(counts, elapsed, self.request.queue.choose_words(alone=self.plan.copies_alone))

    def _read_counts(self) -> Counts:
        return read_counts(self.connection, self.plan.name, self.request.queue.name)


def count_added(tables: Iterable[Enqueued]) -> int:
    """Return how many batches a pass added."""
    return sum(table.batches for table in tables)


def count_entries_of(tables: Iterable[Enqueued]) -> int:
    """Return how many entries a pass added."""
    return sum(table.entries for table in tables)


def run_one_pass(
    connection: Connection, plan: Plan, request: Request, options: WorkerOptions, reporter: Reporter, *, unsettled: str
) -> int:
    """Run one pass, report it, and return the exit status.

    The status is 1 where entries are left over, which `unsettled` describes, else 0.
    """
    if options.processes == 0:
        tables = enqueue(connection, plan, request)
        entries, batches = sum(table.entries for table in tables), sum(table.batches for table in tables)
        reporter.print(describe_enqueued(entries, batches))
        return 0
    log_path = options.log_file or name_log(plan, request)
    with log_to_file(log_path) as log:
        throughput = Run(connection, plan, request, options, reporter, log).one_pass()
        reporter.print(str(throughput))
    reporter.report_outcomes(throughput.counts)
    reporter.print(f"Log: {log_path}")
    if paused := find_pause(connection, plan.name):
        reporter.print(describe_pause(plan.name, paused))
        return 1
    if not throughput.counts.unsettled:
        return 0
    reporter.print(f"{throughput.counts.unsettled:,} {unsettled} (see `rowferry errors`)")
    return 1


def name_log(plan: Plan, request: Request) -> Path:
    """Return the name of a new log file in this folder."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return Path(f"rowferry-{plan.name}-{request.queue.name}-{moment}-{os.getpid()}.log")
