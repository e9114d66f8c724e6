"""A batch that is set back to INIT is due now, and counts as new."""

from typing import Any

from rowferry.batch import Judgement, Verdict
from rowferry.db.connection import connect
from rowferry_worker.batch.claim import claim_batch
from support.entries.entry_table import EntryTable
from support.queue.held_batches import HOUR, crash, hold


def put_in_error(table: EntryTable) -> dict[str, Any]:
    with hold(table) as held:
        held.finish(
            Judgement(Verdict.ERROR, error="4 failed"),
            migrated=3,
            changed=1,
            deleted=1,
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
    assert ten.counts() == {"migrated": 3, "changed": 1, "deleted": 1}
    assert [failure["outcome"] for failure in ten.failures()] == ["changed", "deleted"]
    with hold(ten) as held:
        assert (held.attempt.number, held.attempt.crashes) == (1, 0)


def test_a_requeued_batch_is_due_at_once(ten: EntryTable) -> None:
    put_in_error(ten)
    ten.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour'")
    ten.execute("update rowferry.batch_queue set status = 'INIT'")
    with connect("worker test") as connection:
        assert claim_batch(connection, ["migrate"]) is not None


def test_a_batch_that_waits_is_not_reset(ten: EntryTable) -> None:
    """An operator's UPDATE without a WHERE must not give every waiting batch its attempts back."""
    crash(ten, 1)
    with hold(ten) as held:
        held.finish(Judgement(Verdict.RETRY, HOUR), failed=10)
    before = ten.batch()
    ten.execute("update rowferry.batch_queue set status = 'INIT'")
    assert ten.batch() == before
