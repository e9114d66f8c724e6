"""What a verdict writes of a batch, its attempt and each entry that failed, and what it leaves as it was."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import errors

from rowferry.batch import Attempt, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import connect
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.verdict import write_failure, write_verdict
from support.entries.entry_table import EntryTable
from support.queue.held_batches import HOUR, Held, crash, hold

UNSETTLED = ["missing", "conflict", "failed"]


@pytest.fixture
def held(ten: EntryTable) -> Iterator[Held]:
    with hold(ten) as held:
        yield held


def results_for(ids: str, outcome: str) -> list[EntryResult]:
    """Return results with this outcome for entries whose ids are single digits."""
    return [EntryResult(Entry(each, f"image/{each}"), Outcome(outcome), 10, "r", "e") for each in ids]


def write(held: Held, judgement: Judgement, results: list[EntryResult] | None, attempt: Attempt | None = None) -> None:
    """Write a verdict with these results, or on the batch as a whole (None), and commit."""
    attempt = attempt or held.attempt
    if results is None:
        write_failure(held.connection, held.batch, attempt, judgement)
    else:
        write_verdict(held.connection, held.batch, attempt, judgement, results)
    held.connection.commit()


def write_next(ten: EntryTable, judgement: Judgement, results: list[EntryResult] | None) -> None:
    """Write a verdict at the next attempt."""
    with hold(ten) as held:
        write(held, judgement, results)


def attempt_of(ten: EntryTable) -> dict[str, Any]:
    (row,) = ten.execute("select * from rowferry.batch_attempt")
    return row


GIVEN_UP = [(verdict, results) for verdict in ("LOST", "RELEASED") for results in (results_for("0", "failed"), None)]


@pytest.mark.parametrize(("given_up", "results"), GIVEN_UP)
def test_a_verdict_replaces_that_of_an_attempt_that_was_given_up(
    ten: EntryTable, held: Held, given_up: str, results: list[EntryResult] | None
) -> None:
    """The ledger may have heard of a loss that was none, or of a release that came to nothing."""
    held.ledger.call("end_attempt", held.attempt.id, given_up, "as it seemed")
    write(held, Judgement(Verdict.ERROR, error="as it was"), results)
    attempt = attempt_of(ten)
    assert (attempt["verdict"], attempt["error"], ten.batch()["status"]) == ("ERROR", "as it was", "ERROR")
    assert attempt["started_at"] <= attempt["finished_at"]


@pytest.mark.parametrize("verdict", ["DONE", "RETRY", "ERROR"])
def test_a_verdict_that_was_written_stays(ten: EntryTable, held: Held, verdict: str) -> None:
    ten.execute("update rowferry.batch_attempt set verdict = %s, error = 'first', finished_at = now()", (verdict,))
    with pytest.raises(errors.NoDataFound):
        write(held, Judgement(Verdict.RELEASED, HOUR, "second"), results_for("0", "failed"))
    held.connection.rollback()
    assert (attempt_of(ten)["verdict"], attempt_of(ten)["error"]) == (verdict, "first")


def test_a_batch_that_fails_as_a_whole_leaves_a_verdict_that_was_written(ten: EntryTable, held: Held) -> None:
    ten.execute("update rowferry.batch_attempt set verdict = 'RETRY', error = 'first', finished_at = now()")
    write(held, Judgement(Verdict.ERROR, error="second"), None)
    assert (attempt_of(ten)["verdict"], attempt_of(ten)["error"]) == ("RETRY", "first")
    assert (ten.batch()["status"], ten.batch()["error"]) == ("ERROR", "second")


def other_attempt(ten: EntryTable, held: Held) -> Attempt:
    """Return an attempt at another batch, the third that counts there."""
    ten.add_legacy(range(10, 20)).enqueue(10)
    ten.execute("insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id) values (2, 0, 3, 'other')")
    (row,) = ten.execute("select id from rowferry.batch_attempt where batch_id = 2")
    return Attempt(row["id"], 3, 0)


def test_the_attempt_of_another_batch_ends_none(ten: EntryTable, held: Held) -> None:
    attempt = other_attempt(ten, held)
    with pytest.raises(errors.NoDataFound):
        write(held, Judgement(Verdict.DONE), results_for("0123456789", "migrated"), attempt)
    held.connection.rollback()
    assert (ten.statuses(), ten.verdicts()) == ({"INIT"}, [None, None])


def test_a_batch_that_fails_as_a_whole_leaves_the_attempt_of_another(ten: EntryTable, held: Held) -> None:
    write(held, Judgement(Verdict.ERROR, error="why"), None, other_attempt(ten, held))
    assert ten.verdicts() == [None, None]
    failed, _ = ten.batches()
    assert (failed["status"], failed["attempts"], failed["worker_id"]) == ("ERROR", 1, None)


def test_a_batch_gets_its_verdict_though_the_ledger_was_emptied(ten: EntryTable, held: Held) -> None:
    ten.execute("delete from rowferry.batch_attempt")
    write(held, Judgement(Verdict.RETRY, HOUR, "why"), None)
    batch = ten.batch()
    assert (batch["status"], batch["attempts"], batch["error"], batch["started_at"]) == ("INIT", 1, "why", None)


def test_no_batch_has_more_attempts_than_it_may_have_however_often_it_crashed(ten: EntryTable) -> None:
    crash(ten, 4)
    with hold(ten) as held:
        assert held.attempt.number == 5
        write(held, Judgement(Verdict.ERROR, error="why"), None)
    assert ten.batch()["attempts"] == ten.batch()["max_attempts"] == 3


VERDICTS = [
    (Verdict.DONE, results_for("0123456789", "migrated")),
    (Verdict.ERROR, results_for("0123456789", "failed")),
    (Verdict.ERROR, None),
    (Verdict.RETRY, results_for("0123456789", "failed")),
    (Verdict.RETRY, None),
    (Verdict.RELEASED, results_for("0123456789", "failed")),
    (Verdict.RELEASED, None),
]
"""Each verdict, with results and on the batch as a whole."""


@pytest.mark.parametrize(("verdict", "results"), VERDICTS)
def test_a_verdict_says_by_which_worker_since_when_until_when_and_why(
    ten: EntryTable, verdict: Verdict, results: list[EntryResult] | None
) -> None:
    ten.execute("update rowferry.batch_queue set error = 'of an earlier attempt', worker_id = 'an earlier one'")
    error = None if verdict is Verdict.DONE else "why"
    with hold(ten) as held:
        due_at = ten.batch()["run_after"]
        write(held, Judgement(verdict, HOUR, error), results)
    batch, attempt = ten.batch(), attempt_of(ten)
    assert (batch["worker_id"], batch["started_at"]) == (attempt["worker_id"], attempt["started_at"])
    assert (batch["error"], attempt["error"], attempt["verdict"]) == (error, error, verdict)
    is_final = verdict in {Verdict.DONE, Verdict.ERROR}
    assert (batch["status"], batch["finished_at"] is not None) == (verdict if is_final else "INIT", is_final)
    assert batch["attempts"] == (0 if verdict is Verdict.RELEASED else 1)
    assert ten.verdicts() == [verdict]
    if is_final:
        assert batch["run_after"] == due_at
        return
    assert abs(batch["run_after"] - attempt["finished_at"] - HOUR) <= timedelta(minutes=1)
    assert (batch["finished_at"], batch["failed"]) == (None, len(results or ()))
    with connect("worker other") as connection:
        assert claim_batch(connection, ["migrate"]) is None


def test_bytes_add_up_over_the_attempts(ten: EntryTable) -> None:
    write_next(ten, Judgement(Verdict.RETRY), results_for("0123", "migrated") + results_for("456789", "failed"))
    write_next(ten, Judgement(Verdict.DONE), results_for("456789", "migrated"))
    assert ten.batch()["bytes"] == 160


@pytest.mark.parametrize("outcome", UNSETTLED)
def test_what_an_attempt_left_is_forgotten_though_the_next_one_does_not_find_it(ten: EntryTable, outcome: str) -> None:
    """Its row has gone, or is no entry any more."""
    write_next(ten, Judgement(Verdict.RETRY), results_for("01234567", "migrated") + results_for("89", outcome))
    assert len(ten.failures()) == 2
    write_next(ten, Judgement(Verdict.DONE), results_for("8", "kept"))
    assert ten.failures() == []
    assert (ten.counts(), ten.batch()["entry_count"]) == ({"migrated": 8, "kept": 1}, 9)


def test_entries_that_were_kept_and_are_read_again_are_counted_once(ten: EntryTable) -> None:
    ten.execute('update rowferry.batch_queue set payload = payload || \'{"read_again": ["kept"]}\'')
    write_next(ten, Judgement(Verdict.RETRY), results_for("01234567", "kept") + results_for("89", "failed"))
    write_next(ten, Judgement(Verdict.DONE), results_for("0123456789", "kept"))
    assert (ten.counts(), ten.batch()["entry_count"]) == ({"kept": 10}, 10)


def test_two_results_of_one_id_are_one_failure(ten: EntryTable, held: Held) -> None:
    """The table may have got two rows with one id since it was enqueued."""
    write(held, Judgement(Verdict.ERROR), results_for("01234567", "migrated") + results_for("88", "failed"))
    assert [failure["entry_id"] for failure in ten.failures()] == ["8"]
    assert (ten.counts(), ten.batch()["entry_count"]) == ({"migrated": 8, "failed": 1}, 9)


def test_what_was_not_settled_before_counts_as_failed_where_the_batch_fails_as_a_whole(ten: EntryTable) -> None:
    outcomes = dict(zip(["migrated", "kept", "changed", "deleted", *UNSETTLED], [1, 1, 1, 1, 2, 1, 3], strict=True))
    with hold(ten) as held:
        held.finish(Judgement(Verdict.RETRY), **outcomes)
    write_next(ten, Judgement(Verdict.RETRY, error="why"), None)
    assert ten.counts() == outcomes, "as they were"
    ten.execute("update rowferry.batch_queue set failed = 0")
    write_next(ten, Judgement(Verdict.ERROR, error="why"), None)
    assert ten.counts() == outcomes
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


def test_a_done_batch_whose_counts_do_not_balance_is_refused(ten: EntryTable) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="batch_queue_done_balances"):
        ten.execute("update rowferry.batch_queue set status = 'DONE', migrated = 9")
