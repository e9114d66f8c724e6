"""A worker in this process that takes one batch, or one after the other, when a test says so."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager

from rowferry.db.connection import connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.backoff import Backoff
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.run import ClaimedBatch, process_batch
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.queues import find_queue
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.state import WorkerState
from support.queue.held_batches import claim


@contextmanager
def at_work(
    parallel: int = 16, queues: Iterable[str] = ("migrate",), *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[], bool]]:
    """Yield a function that works on the next due batch, and returns False when none is due.

    `clock` tells for how long a migration with a fault is skipped.
    """
    with ExitStack() as until:
        parts = Ledger("test"), MigrationContextCache(parallel), CopyScheduler(parallel)
        state = WorkerState("test", list(queues), *parts, backoff=Backoff(clock))
        state.stopping.set()  # so that nothing rests between two turns
        until.callback(state.ledger.close)
        until.callback(state.migration_contexts.close)
        connection = until.enter_context(closing(connect("worker test")))

        def take_turn() -> bool:
            batch = claim_batch(connection, list(queues), passed_over=state.passed_over(), lines=state.lines)
            if batch is None:
                connection.rollback()
            else:
                ClaimedBatch(state, connection, batch, find_queue(batch.queue_name)).run()
            return batch is not None

        yield take_turn


def take_one_turn(until: float) -> None:
    """Work on the next due batch of `migrate` with a time budget that ends at `until`."""
    with (
        closing(Ledger("test")) as ledger,
        closing(MigrationContextCache(1)) as contexts,
        connect("worker test") as connection,
    ):
        batch = claim(connection)
        attempt, found = begin_attempt(ledger, batch, "test"), contexts.find(connection, batch)
        held = (batch, attempt, connection, found, CopyScheduler(1))
        process_batch(BatchContext(find_queue("migrate"), *held, threading.Event(), until))
