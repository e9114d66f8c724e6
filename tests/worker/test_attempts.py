"""The ledger of attempts outlives every crash, and a batch never runs for ever."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from rowferry.batch import Judgement, Verdict
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.run import process_batch
from rowferry_worker.queues import find_queue
from rowferry_worker.scheduling.scheduler import CopyScheduler
from support.entries.entry_table import EntryTable
from support.queue.held_batches import Held, crash, hold


def test_an_attempt_outlives_the_rollback_of_its_batch(ten: EntryTable) -> None:
    with hold(ten) as held:
        before = ten.batch()
        held.connection.rollback()
        assert [attempt["id"] for attempt in ten.attempts()] == [held.attempt.id]
    assert ten.batch() == before
    assert ten.verdicts() == [None]


def test_attempts_are_numbered_from_one_and_deaths_are_counted(ten: EntryTable) -> None:
    seen: list[tuple[int, int]] = []
    for _ in range(3):
        with hold(ten) as held:
            seen.append((held.attempt.number, held.attempt.crashes))
    assert seen == [(1, 0), (2, 1), (3, 2)]


def test_a_batch_of_one_that_killed_its_workers_is_not_run_again(ten: EntryTable) -> None:
    ten.execute("update rowferry.batch_queue set entry_count = 1")
    crash(ten, 3)
    with hold(ten) as held:
        process_batch(context_without_route(held))
    batch = ten.batch()
    assert (batch["status"], batch["failed"], batch["attempts"]) == ("ERROR", 1, 3)
    assert batch["error"] == "the worker died 3 times while it held this batch; it is not run again"
    assert ten.verdicts() == [None, None, None, "ERROR"]
    ten.check_balance()


def context_without_route(held: Held) -> BatchContext:
    """Return the context of a batch that fails as soon as it is performed."""
    migration: Any = SimpleNamespace(
        name="avatars", plan=SimpleNamespace(name="avatars"), read_settings=lambda spec: spec.settings()
    )
    return BatchContext(
        find_queue("migrate"), held.batch, held.attempt, held.connection, migration, CopyScheduler(1), Event()
    )


def test_the_last_attempt_that_is_left_is_still_made(ten: EntryTable) -> None:
    crash(ten, 2)
    with hold(ten) as held:
        result = process_batch(context_without_route(held))
    assert "AttributeError" in (result.judgement.error or "")
    assert ten.batch()["status"] == "ERROR"


def test_a_fault_of_ours_is_tried_again_while_attempts_are_left(ten: EntryTable) -> None:
    with hold(ten) as held:
        result = process_batch(context_without_route(held))
    assert result.judgement.verdict is Verdict.RETRY
    batch = ten.batch()
    assert (batch["status"], batch["attempts"]) == ("INIT", 1)
    assert "AttributeError" in batch["error"]


@pytest.mark.parametrize("verdict", ["LOST", "RELEASED"])
def test_lost_and_released_attempts_cost_nothing(verdict: str, ten: EntryTable) -> None:
    for _ in range(5):
        with hold(ten) as held:
            held.connection.rollback()
            held.ledger.call("end_attempt", held.attempt.id, verdict, "told so")
    with hold(ten) as held:
        assert (held.attempt.number, held.attempt.crashes) == (1, 0)
    assert ten.verdicts() == [verdict] * 5 + [None]
    assert ten.attempts()[0]["error"] == "told so"
    assert ten.attempts()[0]["finished_at"] is not None


def test_a_verdict_that_was_given_stays(ten: EntryTable) -> None:
    with hold(ten) as held:
        held.finish(Judgement(Verdict.DONE), migrated=10)
        held.ledger.call("end_attempt", held.attempt.id, "LOST", "the answer to COMMIT never came")
    assert ten.verdicts() == ["DONE"]
