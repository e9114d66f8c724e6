"""The attempts of slots that wait together are recorded in one round trip, and each keeps its own result."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest

from rowferry.batch import Attempt, Batch
from rowferry.db.connection import Connection, call, connect
from rowferry.errors import DatabaseUnavailable, UsageError
from rowferry_worker.attempts import AttemptRecorder
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.ledger import Ledger
from support.entries.entry_table import EntryTable
from support.processes.processes import wait_for
from support.queue.held_batches import call_and_lose_the_answer

BATCHES = 6
REFUSED = 3
"""The batch whose attempt a trigger refuses."""
REFUSAL = f"""
create function public.refuse() returns trigger language plpgsql as $$
begin
    raise exception 'not this one' using errcode = 'check_violation';
end; $$;
create trigger refuse before insert on rowferry.batch_attempt
for each row when (new.batch_id = {REFUSED}) execute function public.refuse()
"""


class Slots:
    """Threads that each record an attempt at a batch of their own; the calls to PostgreSQL are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ledger = Ledger("test")
        self.recorder = AttemptRecorder(self.ledger, "test")
        self.calls: list[int] = []
        """How many batches each call recorded."""
        monkeypatch.setattr("rowferry_worker.ledger.call", self._call)

    def _call(self, connection: Connection, function: str, *arguments: Any) -> list[Any]:
        if function == "begin_attempts":
            self.calls.append(len(arguments[0]))
        return call(connection, function, *arguments)

    def begin_together(
        self, table: EntryTable, pool: ThreadPoolExecutor, batches: list[Batch]
    ) -> list[Future[Attempt]]:
        """Let the first wait for a lock until all others have come; return what became of each."""
        with psycopg.connect(table.dsn) as blocking:
            blocking.execute("lock rowferry.batch_attempt in exclusive mode")
            first = pool.submit(self.recorder.begin, batches[0])
            wait_for(lambda: self.calls)
            others = [pool.submit(self.recorder.begin, batch) for batch in batches[1:]]
            wait_for(lambda: len(self.recorder._waiting) == len(others))
        return [first, *others]


@pytest.fixture
def slots(table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slots]:
    table.add_legacy(range(1, BATCHES + 1)).enqueue(1)
    slots = Slots(monkeypatch)
    with closing(slots.ledger):
        yield slots


@pytest.fixture
def batches(slots: Slots) -> Iterator[list[Batch]]:
    """Batches, each claimed on a connection of its own."""
    del slots  # has filled the queue
    with ExitStack() as until:
        claimed = [claim_batch(until.enter_context(closing(connect("worker"))), ["migrate"]) for _ in range(BATCHES)]
        yield [batch for batch in claimed if batch is not None]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(BATCHES) as pool:
        yield pool


def test_slots_that_wait_together_take_one_round_trip(
    table: EntryTable, slots: Slots, batches: list[Batch], pool: ThreadPoolExecutor
) -> None:
    attempts = [future.result(60) for future in slots.begin_together(table, pool, batches)]
    assert slots.calls == [1, BATCHES - 1]
    recorded = {row["id"]: row["batch_id"] for row in table.attempts()}
    assert [recorded[attempt.id] for attempt in attempts] == [batch.id for batch in batches]
    assert {(attempt.number, attempt.crashes) for attempt in attempts} == {(1, 0)}


def test_a_refused_attempt_takes_no_other_with_it(
    table: EntryTable, slots: Slots, batches: list[Batch], pool: ThreadPoolExecutor
) -> None:
    table.execute(REFUSAL)
    futures = slots.begin_together(table, pool, batches)
    (refused,) = [future for batch, future in zip(batches, futures, strict=True) if batch.id == REFUSED]
    with pytest.raises(UsageError, match="not this one"):
        refused.result(60)
    recorded = {row["id"]: row["batch_id"] for row in table.attempts()}
    for batch, future in zip(batches, futures, strict=True):
        if batch.id != REFUSED:
            assert recorded[future.result(60).id] == batch.id
    assert len(recorded) == BATCHES - 1, "each was recorded once, also those that were refused with another at first"


def test_a_lost_connection_is_told_to_all_and_counts_for_none(
    table: EntryTable, slots: Slots, batches: list[Batch], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempts are recorded and the worker never hears of them."""
    with monkeypatch.context() as breaking:

        def call_first(connection: Connection, function: str, *arguments: Any) -> list[Any]:
            done = slots._call(connection, function, *arguments)
            breaking.setattr("rowferry_worker.ledger.call", call_and_lose_the_answer)
            return done

        breaking.setattr("rowferry_worker.ledger.call", call_first)
        first, *others = slots.begin_together(table, pool, batches)
        assert first.result(60).number == 1
        for lost in others:
            with pytest.raises(DatabaseUnavailable):
                lost.result(60)
    assert table.verdicts() == [None] * BATCHES
    again = [slots.recorder.begin(batch) for batch in batches[1:]]
    assert {(attempt.number, attempt.crashes, attempt.losses) for attempt in again} == {(1, 0, 1)}
    assert table.verdicts() == [None] + ["LOST"] * (BATCHES - 1) + [None] * (BATCHES - 1)


def test_a_batch_that_two_slots_hold_has_an_attempt_for_each(
    table: EntryTable, slots: Slots, batches: list[Batch], pool: ThreadPoolExecutor
) -> None:
    """The first has lost its connection, and with it the batch, without having noticed yet."""
    futures = slots.begin_together(table, pool, [batches[0], batches[1], batches[1]])
    ids = {future.result(60).id for future in futures}
    assert ids == {row["id"] for row in table.attempts()}
    assert len(ids) == 3


def test_while_the_database_is_away_each_slot_hears_of_it(
    slots: Slots, batches: list[Batch], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/nothing")
        futures = [pool.submit(slots.recorder.begin, batch) for batch in batches]
        for future in futures:
            with pytest.raises(DatabaseUnavailable):
                future.result(60)
    assert slots.recorder.begin(batches[0]).crashes == 0
