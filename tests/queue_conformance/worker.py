"""A worker of one slot in this process: each turn works on the next due batch, with the queue's perform wrapped."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from rowferry.batch import Entry, Performed
from rowferry.db.connection import Connection, connect
from rowferry.errors import DatabaseUnavailable
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.context import BatchContext, Perform, Queue
from rowferry_worker.batch.run import ClaimedBatch
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.options import Options
from rowferry_worker.queues import find_queue
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.state import WorkerState

Around = Callable[[Perform, BatchContext, Sequence[Entry]], Performed]
"""Is called in the place of a queue's perform, with it."""


def just_perform(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
    return perform(context, entries)


@dataclass
class Worker:
    """`given`: the ids of the entries that each perform was given, in order."""

    queue: Queue
    state: WorkerState
    given: list[list[str]] = field(default_factory=list)
    connection: Connection | None = None

    def take_turn(self, around: Around = just_perform) -> bool:
        """Work on the next due batch; return False when none is due. A lost connection is opened anew."""
        if self.connection is None:
            self.state.ledger.flush()
            self.connection = connect("worker suite")
        batch = claim_batch(
            self.connection, [self.queue.spec.name], passed_over=self.state.passed_over(), lines=self.state.lines
        )
        if batch is None:
            self.connection.rollback()
            return False

        def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
            self.given.append([entry.id for entry in entries])
            return around(self.queue.perform, context, entries)

        try:
            ClaimedBatch(self.state, self.connection, batch, Queue(self.queue.spec, perform)).run()
        except DatabaseUnavailable:
            self.disconnect()
        return True

    def work(self, around: Around = just_perform, *, most: int = 100) -> None:
        """Work on all that is due."""
        for _ in range(most):
            if not self.take_turn(around):
                return
        raise AssertionError(f"{self.queue.spec.name} does not come to an end")

    def disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@contextmanager
def working(queue: str, *, parallel: int = 4, time_budget: timedelta = timedelta(seconds=20)) -> Iterator[Worker]:
    """Yield a worker of this queue alone."""
    with ExitStack() as until:
        ledger = Ledger("suite")
        until.callback(ledger.close)
        contexts = MigrationContextCache(parallel)
        until.callback(contexts.close)
        state = WorkerState(
            "suite", [queue], ledger, contexts, CopyScheduler(parallel), Options(time_budget=time_budget)
        )
        state.stopping.set()  # so that nothing rests between two turns
        worker = Worker(find_queue(queue), state)
        until.callback(worker.disconnect)
        yield worker
