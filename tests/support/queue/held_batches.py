"""A batch in the hands of a worker, as the tests of verdicts hold it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from rowferry.batch import Attempt, Batch, Entry, EntryResult, Judgement, Outcome
from rowferry.db.connection import Connection, call, connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.verdict import write_failure, write_verdict
from rowferry_worker.ledger import Ledger
from support.entries.entry_table import EntryTable

HOUR = timedelta(hours=1)
NUMBERS = count(1)


@dataclass(frozen=True)
class Held:
    """A claimed batch with its attempt, as a worker holds it."""

    connection: Connection
    ledger: Ledger
    batch: Batch
    attempt: Attempt

    def finish(self, judgement: Judgement, **outcomes: int) -> None:
        """Write a verdict over entries with these outcomes, and commit."""
        write_verdict(self.connection, self.batch, self.attempt, judgement, results_of(**outcomes))
        self.connection.commit()

    def fail(self, judgement: Judgement) -> None:
        write_failure(self.connection, self.batch, self.attempt, judgement)
        self.connection.commit()


def claim(connection: Connection, *queues: str) -> Batch:
    """Claim the batch of these queues, else of `migrate`, that is due, which there must be."""
    batch = claim_batch(connection, list(queues) or ["migrate"])
    assert batch is not None
    return batch


def begin(connection: Connection, batch: Batch) -> Attempt:
    """Record an attempt at a batch in the session that has claimed it."""
    (row,) = call(connection, "begin_attempt", batch.id, batch.requeues, "h:1:x")
    return Attempt(row["attempt_id"], row["number"], row["crashes"])


@contextmanager
def hold(table: EntryTable) -> Iterator[Held]:
    """Claim a batch and begin an attempt; in the end the worker is gone, without a word unless it said one."""
    table.make_due()
    worker_id = f"test {next(NUMBERS)}"
    with connect("worker test") as connection, closing(Ledger(worker_id)) as ledger:
        batch = claim(connection)
        yield Held(connection, ledger, batch, begin_attempt(ledger, batch, worker_id))
        connection.rollback()


def split(session: Connection, batch_id: int, first: str, last: str, *, count: int, keep: str | None = None) -> None:
    """Put a range of a claimed batch back as a batch of `count` entries; its own then ends at `keep`."""
    part, kept = Jsonb({"first": first, "last": last}), None if keep is None else Jsonb({"last": keep})
    call(session, "split_batch", batch_id, part, count, 0, kept)


def results_of(**outcomes: int) -> list[EntryResult]:
    """Return results with these outcomes for entries 0, 1, 2, …"""
    named = [outcome for outcome, count in outcomes.items() for _ in range(count)]
    return [
        EntryResult(Entry(str(number), f"image/{number}"), Outcome(outcome), 10, f"reason {outcome}", f"why {number}")
        for number, outcome in enumerate(named)
    ]


def crash(table: EntryTable, times: int = 1) -> None:
    for _ in range(times):
        with hold(table):
            pass


def call_and_lose_the_answer(connection: Connection, function: str, *arguments: Any) -> list[Any]:
    call(connection, function, *arguments)
    connection.close()
    raise psycopg.OperationalError("server closed the connection unexpectedly")
