"""What a verdict records of each entry that failed, and that counts which do not balance are refused."""

import psycopg
import pytest

from rowferry.batch import Judgement, Verdict
from support.entries.entry_table import EntryTable
from support.queue.held_batches import hold


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
