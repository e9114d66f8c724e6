"""A worker of one slot in this process: each turn works on the next due batch, when a test says so."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rowferry.batch import Entry, Performed
from rowferry.db.connection import Connection, connect
from rowferry.errors import DatabaseUnavailable
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.backoff import Backoff
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.context import BatchContext, Perform, Queue
from rowferry_worker.batch.run import ClaimedBatch, process_batch
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.options import Options
from rowferry_worker.queues import find_queue
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.state import WorkerState
from support.queue.held_batches import claim

Around = Callable[[Perform, BatchContext, Sequence[Entry]], Performed]
"""Is called in the place of a queue's perform, with it."""


@contextmanager
def worker_state(queues: Iterable[str], parallel: int, **more: Any) -> Iterator[WorkerState]:
    """Yield the state of a process that serves these queues; nothing rests between two turns."""
    with closing(Ledger("test")) as ledger, closing(MigrationContextCache(parallel)) as contexts:
        state = WorkerState("test", list(queues), ledger, contexts, CopyScheduler(parallel), **more)
        state.stopping.set()
        yield state


def just_perform(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
    return perform(context, entries)


@dataclass
class Worker:
    """`given`: the ids of the entries that each perform was given, in order."""

    state: WorkerState
    given: list[list[str]] = field(default_factory=list[list[str]])
    connection: Connection | None = None

    def take_turn(self, around: Around = just_perform) -> bool:
        """Work on the next due batch; return False when none is due. A lost connection is opened anew."""
        state = self.state
        if self.connection is None:
            state.ledger.flush()
            self.connection = connect("worker test")
        batch = claim_batch(self.connection, state.queues, passed_over=state.passed_over(), lines=state.lines)
        if batch is None:
            self.connection.rollback()
            return False
        queue = find_queue(batch.queue_name)

        def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
            self.given.append([entry.id for entry in entries])
            return around(queue.perform, context, entries)

        try:
            ClaimedBatch(state, self.connection, batch, Queue(queue.spec, perform)).run()
        except DatabaseUnavailable:
            self.disconnect()
        return True

    def work(self, around: Around = just_perform, *, most: int = 100) -> None:
        """Work on all that is due."""
        for _ in range(most):
            if not self.take_turn(around):
                return
        raise AssertionError(f"{self.state.queues} do not come to an end")

    def disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@contextmanager
def working(*queues: str, parallel: int = 4, time_budget: timedelta = timedelta(seconds=20)) -> Iterator[Worker]:
    """Yield a worker of these queues alone."""
    with worker_state(queues, parallel, options=Options(time_budget=time_budget)) as state:
        worker = Worker(state)
        try:
            yield worker
        finally:
            worker.disconnect()


@contextmanager
def at_work(
    parallel: int = 16, queues: Iterable[str] = ("migrate",), *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[], bool]]:
    """Yield a function that works on the next due batch, and returns False when none is due.

    `clock` tells for how long a migration with a fault is skipped.
    """
    with working(*queues, parallel=parallel, time_budget=Options().time_budget) as worker:
        worker.state.backoff = Backoff(clock)
        yield worker.take_turn


def take_one_turn(until: float) -> None:
    """Work on the next due batch of `migrate` with a time budget that ends at `until`."""
    with worker_state(["migrate"], 1) as state, connect("worker test") as connection:
        batch = claim(connection)
        attempt = begin_attempt(state.ledger, batch, "test")
        found = state.migration_contexts.find(connection, batch)
        held = (batch, attempt, connection, found, CopyScheduler(1))
        process_batch(BatchContext(find_queue("migrate"), *held, threading.Event(), until))
