"""How the work on a batch ends: verdict, rows and ledger agree, and the migration's troubles are counted."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from unittest.mock import Mock

import pytest

from rowferry.batch import Entry, EntryResult, Judgement, Outcome, Performed, Verdict
from rowferry.errors import (
    DatabaseUnavailable,
    MigrationFault,
    ObjectNotFound,
    RowferryError,
    ServerFault,
    Throttled,
    UsageError,
    VerdictRefused,
)
from rowferry_worker.batch import run
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.batch.process import BatchResult
from rowferry_worker.migration import MigrationContext
from rowferry_worker.monitoring import metrics
from support.queue.batch_slot import Slot, end_with, fail_with, settle


def test_a_batch_that_is_given_up_is_as_it_was(slot: Slot) -> None:
    slot.run(end_with(BatchReleased("told to stop")))
    assert slot.table.verdicts() == ["RELEASED"], "at once, before another worker claims it"
    assert slot.end() == ("INIT", 0, ["RELEASED"], 0)
    assert slot.table.attempts()[0]["error"] == "told to stop"
    assert slot.state.backoff.troubles == {}


def test_an_interrupted_batch_is_lost(slot: Slot) -> None:
    with pytest.raises(KeyboardInterrupt):
        slot.run(end_with(KeyboardInterrupt()))
    slot.connection.rollback()
    assert slot.end() == ("INIT", 0, ["LOST"], 0)


def test_a_fault_of_the_table_burns_no_attempt_and_pauses_after_three_batches(
    slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[bool] = []
    monkeypatch.setattr(MigrationContext, "forget_entries", lambda _self: forgotten.append(True))
    for number in range(1, 4):
        batch = slot.run(end_with(MigrationFault("the table has gone")))
        assert slot.end() == ("INIT", 0, ["RELEASED"] * number, 0)
        assert (slot.state.backoff.passed_over() == [batch.migration_id]) == (number < 3)
    (row,) = slot.table.execute("select pause_reason from rowferry.migration")
    assert row["pause_reason"] == "The table has gone."
    assert len(forgotten) == 3, "its tables are looked up again"


@pytest.mark.parametrize(
    ("refusal", "ends_with", "verdict"),
    [
        (UsageError("grant it"), UsageError, "RELEASED"),
        (VerdictRefused("by a trigger, twice"), DatabaseUnavailable, "LOST"),
    ],
    ids=["for good", "by a trigger"],
)
def test_a_verdict_that_is_refused_ends_the_worker_or_is_a_loss(
    slot: Slot, monkeypatch: pytest.MonkeyPatch, refusal: RowferryError, ends_with: type[RowferryError], verdict: str
) -> None:
    monkeypatch.setattr(run, "write_result", Mock(side_effect=refusal))
    with pytest.raises(ends_with, match=str(refusal)):
        slot.run()
    slot.connection.rollback()
    assert slot.end() == ("INIT", 0, [verdict], 0)


def test_a_refused_commit_is_a_loss(slot: Slot) -> None:
    at_commit = "after insert on public.notes deferrable initially deferred"
    slot.table.add_trigger("raise exception 'no';", at_commit, kind="constraint")
    with pytest.raises(DatabaseUnavailable, match="did not commit"):
        slot.run()
    slot.connection.rollback()
    assert slot.end() == ("INIT", 0, ["LOST"], 0)


def test_any_other_error_takes_the_rows_back_and_counts_as_an_attempt(slot: Slot) -> None:
    slot.run(end_with(ValueError("a slip")))
    assert slot.end() == ("INIT", 1, ["RETRY"], 0)
    assert slot.table.batch()["error"] == "ValueError: a slip"


LOST_TWICE = """
update rowferry.batch_attempt set verdict = 'LOST', error = 'gone', finished_at = now()
"""


def counted(outcome: str) -> float:
    return metrics.entries.labels("avatars", "note", outcome)._value.get()


NOTHING_THERE, BROKEN = ObjectNotFound("NoSuchKey", "gone"), ServerFault("InternalError", "broken")
COUNTED = [("missing", NOTHING_THERE, "ERROR", 30), ("failed", BROKEN, "RETRY", 0)]


@pytest.mark.parametrize(("outcome", "error", "verdict", "count"), COUNTED)
def test_entries_that_failed_are_counted_once_they_stay_so(
    slot: Slot, outcome: str, error: RowferryError, verdict: str, count: int
) -> None:
    def perform(_context: BatchContext, entries: Sequence[Entry]) -> Performed:
        return Performed([EntryResult.from_error(entry, error, Outcome(outcome)) for entry in entries])

    before = counted(outcome)
    slot.run(perform)
    assert (slot.end()[0], slot.table.verdicts()) == ("INIT" if verdict == "RETRY" else "ERROR", [verdict])
    assert counted(outcome) - before == count


def test_settled_entries_are_counted_whatever_the_verdict(slot: Slot) -> None:
    before = counted("migrated")

    def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
        ends = settle(context, entries[:9]), fail_with(BROKEN)(context, entries[9:])
        return Performed([result for each in ends for result in each.results])

    slot.run(perform)
    assert slot.end() == ("INIT", 1, ["RETRY"], 9)
    assert counted("migrated") - before == 9


def released() -> float:
    return metrics.attempts.labels("avatars", "note", "RELEASED")._value.get()


def test_each_attempt_that_is_released_is_counted(slot: Slot) -> None:
    """Given up, released by its verdict, and put back before it began."""
    before = released()
    slot.run(end_with(BatchReleased("told to stop")))
    slot.run(fail_with(Throttled("SlowDown", "later")))
    assert released() - before == 2
    slot.table.execute(LOST_TWICE)
    slot.table.make_due()
    slot.run()
    assert (slot.end()[0], slot.table.verdicts()[-1]) == ("INIT", "RELEASED")
    assert released() - before == 3


def test_a_verdict_that_needs_operator_is_logged_as_a_warning_with_its_error(
    slot: Slot, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=run.__name__):
        slot.run(fail_with(BROKEN))
    (line,) = [record for record in caplog.records if record.message == "batch finished"]
    assert (line.levelno, vars(line)["verdict"], vars(line)["failed"]) == (logging.WARNING, "RETRY", 30)
    assert "InternalError" in vars(line)["error"]


def test_a_batch_whose_time_was_over_says_nothing_of_the_server(slot: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    result = BatchResult(Judgement(Verdict.RELEASED, timedelta(0), "the budget"), is_outage=False)
    monkeypatch.setattr(run, "process", lambda _context: result)
    slot.run()
    assert (slot.end()[2], slot.state.backoff.troubles) == (["RELEASED"], {})


def test_of_a_server_that_was_found_away_no_other_wait_is_kept(slot: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is skipped until its detector says that it is back."""

    def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
        monkeypatch.setattr(MigrationContext, "is_away", lambda _self: True)
        return fail_with(Throttled("SlowDown", "later"))(context, entries)

    slot.run(perform)
    assert (slot.end()[2], slot.state.backoff.troubles) == (["RELEASED"], {})
