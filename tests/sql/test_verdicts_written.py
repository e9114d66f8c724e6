"""Counts balance after every verdict, over any number of attempts."""

import psycopg
import pytest

from rowferry.batch import Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry_worker.batch.verdict import write_verdict
from support.entries.entry_table import EntryTable
from support.queue.held_batches import hold


def test_done_counts_every_entry(ten: EntryTable) -> None:
    with hold(ten) as held:
        held.finish(Judgement(Verdict.DONE), migrated=5, kept=2, changed=2, deleted=1)
    batch = ten.batch()
    assert batch["status"] == "DONE"
    assert ten.counts() == {"migrated": 5, "kept": 2, "changed": 2, "deleted": 1}
    assert (batch["bytes"], batch["attempts"], batch["worker_id"][:4]) == (100, 1, "test")
    assert batch["started_at"] <= batch["finished_at"]
    assert [failure["outcome"] for failure in ten.failures()] == ["changed", "changed", "deleted"]
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
