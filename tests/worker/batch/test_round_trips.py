"""What a batch says to PostgreSQL, as libpq traces it: few round trips, and no statement is parsed once more."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from psycopg import errors
from psycopg.pq import TransactionStatus

from rowferry.batch import Entry, EntryResult, Outcome, Performed
from rowferry.db.connection import Connection, connect
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.context import BatchContext, Queue
from rowferry_worker.batch.run import ClaimedBatch
from rowferry_worker.batch.writes import read_and_undo
from rowferry_worker.queues import find_queue
from support.entries.entry_table import EntryTable
from support.queue.batch_slot import Slot, open_slot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="psycopg traces on Linux alone")

BEFORE = 8
"""Batches by which a session has prepared what it says to each."""


@pytest.fixture
def slot(noted: EntryTable) -> Iterator[Slot]:
    with open_slot(noted, batch_size=1) as slot, closing(connect("worker", autocommit=True, bounded=True)) as own:
        yield replace(slot, connection=own)


def settle_silently(_: BatchContext, entries: Sequence[Entry]) -> Performed:
    return Performed([EntryResult(entry, Outcome.MIGRATED) for entry in entries])


def run_one(slot: Slot) -> None:
    batch = claim_batch(slot.connection, ["note"], lines=slot.state.lines)
    assert batch is not None
    ClaimedBatch(slot.state, slot.connection, batch, Queue(find_queue("note").spec, settle_silently)).run()


def listen(connection: Connection, slot: Slot) -> list[str]:
    """Return the lines of libpq's trace of this connection while one batch is run."""
    with tempfile.TemporaryFile("w+") as words:
        connection.pgconn.trace(words.fileno())
        run_one(slot)
        connection.pgconn.untrace()
        words.seek(0)
        return words.readlines()


def count_round_trips(lines: Sequence[str]) -> int:
    """Return how often the server has waited for what comes next."""
    return sum("ReadyForQuery" in line for line in lines)


def test_a_batch_takes_five_round_trips_beside_its_rows_and_what_was_prepared_outlives_batches(slot: Slot) -> None:
    """The claim with the transaction's begin, the attempt on the ledger's, the entries, the verdict, and COMMIT."""
    for _ in range(BEFORE):
        run_one(slot)
    assert count_round_trips(listen(slot.connection, slot)) == 4
    ledger = slot.state.ledger._connection
    assert ledger is not None
    assert count_round_trips(listen(ledger, slot)) == 1
    parsed = [line for line in listen(slot.connection, slot) if "\tParse\t" in line]
    assert [line for line in parsed if "savepoint" not in line] == []


@pytest.mark.parametrize("before", [3, 5, 9])
def test_a_read_that_fails_ends_neither_the_transaction_nor_the_session(slot: Slot, before: int) -> None:
    """Before psycopg prepares it, as it does so (at its sixth time), and afterwards; no lock is left in between."""
    query = b"select id from public.notes"
    slot.connection.execute("begin")
    for _ in range(before):
        assert read_and_undo(slot.connection, query, {}) == []
    slot.table.execute("alter table public.notes rename column id to number")
    with pytest.raises(errors.UndefinedColumn):
        read_and_undo(slot.connection, query, {})
    assert slot.connection.info.transaction_status is TransactionStatus.INTRANS
    slot.table.execute("alter table public.notes rename column number to id")
    for _ in range(BEFORE):
        assert read_and_undo(slot.connection, query, {}) == []
