"""What is counted and logged of a batch that has ended, and of the troubles of its migration."""

import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest

from rowferry.batch import Entry, EntryResult, Judgement, Outcome, Performed, Verdict
from rowferry.errors import (
    ObjectNotFound,
    RowferryError,
    ServerFault,
    Throttled,
)
from rowferry_worker.batch import run
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.batch.process import BatchResult
from rowferry_worker.migration import MigrationContext
from rowferry_worker.monitoring import metrics
from support.queue.batch_slot import Slot, end_with, fail_with, settle

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
    before = counted("migrated"), metrics.objects_copied.labels("avatars", "note")._value.get()

    def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
        ends = settle(context, entries[:9]), fail_with(BROKEN)(context, entries[9:])
        return Performed([result for each in ends for result in each.results])

    slot.run(perform)
    assert slot.end() == ("INIT", 1, ["RETRY"], 9)
    assert counted("migrated") - before[0] == 9
    assert metrics.objects_copied.labels("avatars", "note")._value.get() == before[1], "its queue writes no objects"


def written() -> tuple[float, float]:
    """Return how many objects and bytes the queue has written."""
    labels = ("avatars", "note")
    return metrics.objects_copied.labels(*labels)._value.get(), metrics.object_bytes.labels(*labels)._value.get()


@pytest.mark.parametrize("writes_objects", [True, False])
def test_objects_and_bytes_are_counted_of_queues_that_write_them(slot: Slot, *, writes_objects: bool) -> None:
    def perform(_context: BatchContext, entries: Sequence[Entry]) -> Performed:
        copied, kept = entries[:20], entries[20:]
        results = [EntryResult(entry, Outcome.MIGRATED, 100) for entry in copied]
        return Performed(results + [EntryResult(entry, Outcome.KEPT) for entry in kept])

    before = written()
    slot.run(perform, writes_objects=writes_objects)
    objects, size_bytes = written()
    assert (objects - before[0], size_bytes - before[1]) == ((20, 2000) if writes_objects else (0, 0))


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


# The migration's troubles


def test_a_busy_server_lets_the_migration_be_skipped_and_a_success_ends_that(slot: Slot) -> None:
    batch = slot.run(fail_with(Throttled("SlowDown", "later")))
    assert slot.end() == ("INIT", 0, ["RELEASED"], 0)
    assert slot.state.backoff.troubles[batch.migration_id].outages == 1
    slot.table.make_due()
    slot.run()
    assert (slot.end()[0], slot.state.backoff.troubles) == ("DONE", {})


@pytest.mark.parametrize("error", [BROKEN, NOTHING_THERE])
def test_entries_that_fail_say_nothing_of_the_server(slot: Slot, error: RowferryError) -> None:
    slot.run(fail_with(error))
    assert slot.state.backoff.troubles == {}


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
