"""A slot of a worker in this process, whose queue does what a test says; no S3."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg.pq import TransactionStatus

from rowferry.batch import Batch, Entry, EntryResult, Outcome, Performed
from rowferry.db.connection import Connection, connect
from rowferry_worker.backoff import Backoff
from rowferry_worker.batch.context import BatchContext, Perform, Queue
from rowferry_worker.batch.run import ClaimedBatch
from rowferry_worker.queues import find_queue
from rowferry_worker.state import WorkerState
from support.entries.entry_table import EntryTable
from support.queue.at_work import worker_state
from support.queue.held_batches import claim


def settle(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Write a note for each entry, and call it migrated."""
    for entry in entries:
        context.connection.execute("insert into public.notes (queue, id) values ('note', %s)", (entry.id,))
    return Performed([EntryResult(entry, Outcome.MIGRATED) for entry in entries])


def end_with(error: BaseException) -> Perform:
    """Return work that writes its notes, and then ends with an error."""

    def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
        settle(context, entries)
        raise error

    return perform


def fail_with(error: Any) -> Perform:
    """Return work of which each entry fails with this error."""
    return lambda _context, entries: Performed([EntryResult.from_error(entry, error) for entry in entries])


@dataclass
class Slot:
    """What a worker's slot holds: a session, and the state of its process."""

    table: EntryTable
    state: WorkerState
    connection: Connection

    def run(self, perform: Perform = settle) -> Batch:
        """Claim the batch that is due, and let it live."""
        batch = claim(self.connection, "note")
        ClaimedBatch(self.state, self.connection, batch, Queue(find_queue("note").spec, perform)).run()
        return batch

    def is_idle(self) -> bool:
        """Return whether no claim is left."""
        return self.connection.info.transaction_status in {TransactionStatus.IDLE, TransactionStatus.UNKNOWN}

    def notes(self) -> int:
        (row,) = self.table.execute("select count(*) as n from public.notes")
        return int(row["n"])

    def end(self) -> tuple[str, int, list[str | None], int]:
        """Return the batch's status and attempts, the verdicts of all attempts, and how many notes there are."""
        assert self.is_idle()
        self.state.ledger.flush()
        batch = self.table.batch()
        return batch["status"], batch["attempts"], self.table.verdicts(), self.notes()


@contextmanager
def open_slot(table: EntryTable, batch_size: int = 30) -> Iterator[Slot]:
    """Yield a slot that works on batches of the queue `note`, which leads nowhere and may be tried three times."""
    table.plan["migration"]["max_attempts"] = 3
    table.enqueue(batch_size, queue="note")
    table.execute("update rowferry.queue set next = '{}'")
    # A pause lasts however slow the test is.
    with (
        worker_state(["note"], 4, backoff=Backoff(lambda: 0.0)) as state,
        closing(connect("worker test")) as connection,
    ):
        state.stopping.clear()
        yield Slot(table, state, connection)
