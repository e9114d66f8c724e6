"""The ledger of attempts outlives every crash, and a batch never runs for ever."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from entry_table import EntryTable
from rowferry.batch import Attempt, Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.database import Connection, call, connect
from rowferry_worker.claim import begin_attempt, claim_batch
from rowferry_worker.flight import Flight
from rowferry_worker.ledger import Ledger
from rowferry_worker.process import process_batch
from rowferry_worker.verdict import write_failure, write_verdict
from rowferry_worker.work import Work

HOUR = timedelta(hours=1)


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


@contextmanager
def hold(table: EntryTable) -> Iterator[Held]:
    """Claim a batch and begin an attempt; in the end the worker is gone, without a word unless it said one."""
    table.make_due()
    with connect("worker test") as connection, closing(Ledger("test")) as ledger:
        batch = claim_batch(connection, ["migrate"])
        assert batch is not None
        yield Held(connection, ledger, batch, begin_attempt(ledger, batch, "test"))
        connection.rollback()


def results_of(**outcomes: int) -> list[EntryResult]:
    """Return results with these outcomes for entries 0, 1, 2, …"""
    named = [outcome for outcome, count in outcomes.items() for _ in range(count)]
    return [
        EntryResult(Entry(str(number), f"image/{number}"), Outcome(outcome), 10, f"reason {outcome}", f"why {number}")
        for number, outcome in enumerate(named)
    ]


@pytest.fixture
def ten(table: EntryTable) -> EntryTable:
    """A table with one waiting batch of ten entries, which may be tried three times."""
    table.plan["migration"]["max_attempts"] = 3
    table.add_legacy(range(10))
    table.enqueue(10)
    return table


def crash(table: EntryTable, times: int = 1) -> None:
    for _ in range(times):
        with hold(table):
            pass


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
        process_batch(work_without_route(held))
    batch = ten.batch()
    assert (batch["status"], batch["failed"], batch["attempts"]) == ("ERROR", 1, 3)
    assert batch["error"] == "the worker died 3 times while it held this batch; it is not run again"
    assert ten.verdicts() == [None, None, None, "ERROR"]
    ten.check_balance()


def work_without_route(held: Held) -> Work:
    """Return work that fails as soon as somebody begins it."""
    route: Any = SimpleNamespace(plan=SimpleNamespace(name="avatars"))
    return Work(held.batch, held.attempt, held.connection, route, Flight(1), Event())


def test_the_last_attempt_that_is_left_is_still_made(ten: EntryTable) -> None:
    crash(ten, 2)
    with hold(ten) as held:
        processed = process_batch(work_without_route(held))
    assert "AttributeError" in processed.judgement.error
    assert ten.batch()["status"] == "ERROR"


def test_a_fault_of_ours_is_tried_again_while_attempts_are_left(ten: EntryTable) -> None:
    with hold(ten) as held:
        processed = process_batch(work_without_route(held))
    assert processed.judgement.verdict is Verdict.RETRY
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


def test_done_counts_every_entry(ten: EntryTable) -> None:
    with hold(ten) as held:
        held.finish(Judgement(Verdict.DONE), migrated=5, kept=2, changed=2, vanished=1)
    batch = ten.batch()
    assert batch["status"] == "DONE"
    assert ten.counts() == {"migrated": 5, "kept": 2, "changed": 2, "vanished": 1}
    assert (batch["bytes"], batch["attempts"], batch["worker_id"]) == (100, 1, "test")
    assert batch["started_at"] <= batch["finished_at"]
    assert [failure["outcome"] for failure in ten.failures()] == ["changed", "changed", "vanished"]
    ten.check_balance()


def test_error_records_each_entry_that_failed(ten: EntryTable) -> None:
    with hold(ten) as held:
        held.finish(Judgement(Verdict.ERROR, error="three things"), migrated=7, missing=1, conflict=1, failed=1)
    assert ten.batch()["error"] == "three things"
    found = [(f["entry_id"], f["key"], f["outcome"], f["reason"], f["error"], f["attempt"]) for f in ten.failures()]
    assert found == [
        ("7", "image/7", "missing", "reason missing", "why 7", 1),
        ("8", "image/8", "conflict", "reason conflict", "why 8", 1),
        ("9", "image/9", "failed", "reason failed", "why 9", 1),
    ]
    ten.check_balance()


@pytest.mark.parametrize(("verdict", "attempts"), [(Verdict.RETRY, 1), (Verdict.RELEASED, 0)])
def test_a_batch_put_back_is_due_after_its_rest(verdict: Verdict, attempts: int, ten: EntryTable) -> None:
    with hold(ten) as held:
        held.finish(Judgement(verdict, HOUR, "later"), migrated=7, failed=3)
    (batch,) = ten.execute("select *, run_after - clock_timestamp() as rest from rowferry.batch_queue")
    assert (batch["status"], batch["attempts"], batch["error"]) == ("INIT", attempts, "later")
    assert HOUR - timedelta(minutes=2) < batch["rest"] <= HOUR
    assert (batch["migrated"], batch["failed"], batch["finished_at"]) == (7, 3, None)
    with connect("worker other") as connection:
        assert claim_batch(connection, ["migrate"]) is None


def test_counts_balance_over_several_attempts(ten: EntryTable) -> None:
    """The second attempt reads only what is still legacy; what was settled before stays counted."""
    with hold(ten) as held:
        held.finish(Judgement(Verdict.RETRY, error="some failed"), migrated=4, changed=1, failed=5)
    with hold(ten) as held:
        results = [
            EntryResult(Entry("5", "image/5"), Outcome.MIGRATED, 10),
            EntryResult(Entry("6", "image/6"), Outcome.KEPT),
            EntryResult(Entry("7", "image/7"), Outcome.MISSING, reason="NoSuchKey", error="gone"),
        ]
        write_verdict(held.connection, held.batch, held.attempt, Judgement(Verdict.ERROR, error="one"), results)
        held.connection.commit()
    assert ten.counts() == {"migrated": 5, "kept": 1, "changed": 1, "missing": 1}
    assert ten.batch()["entry_count"] == 8, "two were no longer legacy when they were read again"
    assert [(f["entry_id"], f["attempt"]) for f in ten.failures()] == [("4", 1), ("7", 2)]
    ten.check_balance()


def test_an_entry_that_changed_and_was_read_again_has_one_outcome(ten: EntryTable) -> None:
    with hold(ten) as held:
        held.finish(Judgement(Verdict.RETRY), changed=1, failed=1, migrated=8)
    with hold(ten) as held:
        held.finish(Judgement(Verdict.DONE), migrated=2)
    assert ten.counts() == {"migrated": 10}
    assert ten.failures() == []


def test_a_done_batch_whose_counts_do_not_balance_is_refused(ten: EntryTable) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="batch_queue_done_balances"):
        ten.execute("update rowferry.batch_queue set status = 'DONE', migrated = 9")


def test_an_attempt_without_outcomes_keeps_what_was_settled_before(ten: EntryTable) -> None:
    with hold(ten) as held:
        held.finish(Judgement(Verdict.RETRY), migrated=6, missing=1, failed=3)
    with hold(ten) as held:
        held.fail(Judgement(Verdict.ERROR, error="the plan has no such entries"))
    batch = ten.batch()
    assert (batch["status"], batch["attempts"], batch["error"]) == ("ERROR", 2, "the plan has no such entries")
    assert ten.counts() == {"migrated": 6, "missing": 1, "failed": 3}
    ten.check_balance()


@pytest.mark.parametrize(("verdict", "attempts"), [(Verdict.RETRY, 1), (Verdict.RELEASED, 0)])
def test_an_attempt_without_outcomes_may_be_put_back(verdict: Verdict, attempts: int, ten: EntryTable) -> None:
    with hold(ten) as held:
        held.fail(Judgement(verdict, HOUR, "the database is full"))
    batch = ten.batch()
    assert (batch["status"], batch["attempts"], batch["error"]) == ("INIT", attempts, "the database is full")
    assert ten.verdicts() == [verdict]
    with connect("worker other") as connection:
        assert claim_batch(connection, ["migrate"]) is None


def put_in_error(table: EntryTable) -> dict[str, Any]:
    with hold(table) as held:
        held.finish(
            Judgement(Verdict.ERROR, error="4 failed"),
            migrated=3,
            changed=1,
            vanished=1,
            missing=2,
            conflict=1,
            failed=2,
        )
    return table.batch()


def test_an_update_by_hand_requeues_and_resets(ten: EntryTable) -> None:
    crash(ten, 2)
    put_in_error(ten)
    ten.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
    batch = ten.batch()
    assert (batch["attempts"], batch["requeues"], batch["error"]) == (0, 1, None)
    assert (batch["started_at"], batch["finished_at"], batch["worker_id"]) == (None, None, None)
    assert ten.counts() == {"migrated": 3, "changed": 1, "vanished": 1}
    assert [failure["outcome"] for failure in ten.failures()] == ["changed", "vanished"]
    with hold(ten) as held:
        assert (held.attempt.number, held.attempt.crashes) == (1, 0)


def test_a_requeued_batch_is_due_at_once(ten: EntryTable) -> None:
    put_in_error(ten)
    ten.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour'")
    ten.execute("update rowferry.batch_queue set status = 'INIT'")
    with connect("worker test") as connection:
        assert claim_batch(connection, ["migrate"]) is not None


def test_a_requeued_batch_can_end_well(ten: EntryTable) -> None:
    put_in_error(ten)
    ten.execute("update rowferry.batch_queue set status = 'INIT'")
    with hold(ten) as held:
        results = [EntryResult(Entry(str(number), f"image/{number}"), Outcome.MIGRATED) for number in range(5, 10)]
        write_verdict(held.connection, held.batch, held.attempt, Judgement(Verdict.DONE), results)
        held.connection.commit()
    assert ten.counts() == {"migrated": 8, "changed": 1, "vanished": 1}
    assert ten.batch()["entry_count"] == 10
    ten.check_balance()


def test_a_batch_that_waits_is_not_reset(ten: EntryTable) -> None:
    """An operator's UPDATE without a WHERE must not give every waiting batch its attempts back."""
    crash(ten, 1)
    with hold(ten) as held:
        held.finish(Judgement(Verdict.RETRY, HOUR), failed=10)
    before = ten.batch()
    ten.execute("update rowferry.batch_queue set status = 'INIT'")
    assert ten.batch() == before


@pytest.mark.parametrize(
    ("arguments", "requeued"),
    [
        ({}, {1, 2, 3}),
        ({"batch_id": 2}, {2}),
        ({"batch_id": 4}, set()),
        ({"error_like": "%disk full%"}, {1}),
        ({"error_like": "%timeout%"}, {2}),
        ({"error_like": "%Slow%"}, {3}),
        ({"error_like": "%", "batch_id": 3}, {3}),
        ({"error_like": "nothing like it"}, set()),
    ],
)
def test_requeue_chooses_by_batch_and_by_error(
    arguments: dict[str, Any], requeued: set[int], table: EntryTable
) -> None:
    table.add_legacy(range(5))
    table.enqueue(1)
    ids = {number: batch["id"] for number, batch in enumerate(table.batches(), 1)}
    for number, (status, error) in enumerate([("ERROR", "the disk full one"), ("ERROR", "x"), ("ERROR", "y")], 1):
        query = "update rowferry.batch_queue set status = %s, error = %s, failed = 1 where id = %s"
        table.execute(query, (status, error, ids[number]))
    table.execute("update rowferry.batch_queue set status = 'DONE', migrated = 1 where id = %s", (ids[4],))
    failure = "insert into rowferry.entry_failure values (%s, '1', 'image/1', 'failed', %s, %s, 1)"
    table.execute(failure, (ids[2], "r", "a timeout it was"))
    table.execute(failure, (ids[3], "SlowDown", "e"))
    if "batch_id" in arguments:
        arguments = arguments | {"batch_id": ids[arguments["batch_id"]]}
    with connect("requeue", autocommit=True) as connection:
        (row,) = call(connection, "requeue", arguments.get("batch_id"), arguments.get("error_like"))
    assert row["requeue"] == len(requeued)
    waiting = {batch["id"] for batch in table.batches() if batch["status"] == "INIT" and batch["requeues"] == 1}
    assert waiting == {ids[number] for number in requeued}
