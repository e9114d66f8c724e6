"""One turn of a worker in this process."""

import threading

from rowferry.db.connection import connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.run import process_batch
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.queues import find_queue
from rowferry_worker.scheduling.scheduler import CopyScheduler
from support.entries.migration import Migration
from support.queue.held_batches import claim


def take_one_turn(migration: Migration, until: float, parallel: int = 1) -> None:
    """Work on the next due batch with a time budget that ends at `until`."""
    ledger, contexts = Ledger("test"), MigrationContextCache(parallel)
    try:
        with connect("worker test") as connection:
            batch = claim(connection)
            attempt = begin_attempt(ledger, batch, "test")
            found = contexts.find(connection, batch)
            context = BatchContext(
                find_queue("migrate"),
                batch,
                attempt,
                connection,
                found,
                CopyScheduler(parallel),
                threading.Event(),
                until,
            )
            process_batch(context)
    finally:
        contexts.close()
        ledger.close()
