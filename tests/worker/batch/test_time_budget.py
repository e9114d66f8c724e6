"""A batch past its time budget commits what is done and puts the rest back, in one transaction."""

import math
import time
from typing import Any

import pytest
from msgspec.structs import replace

from rowferry.batch import Entry, EntryResult, Outcome, Performed
from rowferry.errors import NotStarted
from rowferry.keys import ObjectKeys
from rowferry_queues.migrate import perform
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.objects import Judge, MappedRow
from rowferry_worker.batch.process import choose_counted
from rowferry_worker.copying.copy import CopyResult
from support.entries.migration import Migration
from support.queue.at_work import take_one_turn

COPIED = CopyResult(Outcome.MIGRATED)


def test_what_is_done_is_committed_and_the_rest_is_a_batch_of_its_own(migration: Migration) -> None:
    migration.given(120, 120)
    take_one_turn(until=time.monotonic())
    first, rest = migration.batches()
    assert first["status"] == "DONE"
    assert rest["status"] == "INIT"
    assert 0 < first["entry_count"] == first["migrated"]
    assert first["entry_count"] + rest["entry_count"] == 120
    assert int(first["payload"]["last"]) + 1 == int(rest["payload"]["first"])
    assert rest["payload"]["last"] == "120"
    assert migration.work() == {"migrated": 120}
    assert migration.enqueue()[0].entries == 0
    migration.audit()


@pytest.mark.parametrize("place", [0, 2])
def test_what_ended_behind_the_budget_is_handed_on_once(
    migration: Migration, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """The time was over before one object of the batch was written; rows behind it were updated."""
    migration.fill(6)
    migration.plan["queue"] = {"migrate": {"then": ["verify"]}}
    migration.enqueue(batch_size=6)
    copy = perform.copy_objects

    def leave_one(context: BatchContext, objects: dict[str, str], **options: Any) -> Any:
        found = copy(context, objects, **options)
        return found | {list(objects)[place]: NotStarted("NotStarted", "the time was over")}

    with monkeypatch.context() as patched:
        patched.setattr(perform, "copy_objects", leave_one)
        take_one_turn(until=math.inf)
    if place == 0:
        words = "the time budget ended before its object was written; the next attempt goes on"
        assert migration.attempts()[0]["error"] == words
        assert [failure["error"] for failure in migration.failures()] == [f"NotFinished: {words}"]
    migration.work("migrate")
    handed_on = [batch["payload"] for batch in migration.batches() if batch["queue_name"] == "verify"]
    assert len(handed_on) > 1
    assert sorted(entry_id for payload in handed_on for entry_id in payload.get("only", "123456")) == list("123456")


def test_entries_from_the_first_that_was_not_begun_are_the_rest_and_what_moved_behind_it_counts() -> None:
    entries = [Entry(str(number), f"image/u{number}/me.png") for number in (1, 2, 3)]
    rows = [MappedRow(entry, (ObjectKeys(entry.key, entry.key),)) for entry in entries]
    ends = {entry.key: COPIED for entry in entries}
    assert Judge(ends).split_started(rows) == (rows, [])
    judge = Judge(ends | {entries[1].key: NotStarted("NotStarted", "the time was over")})
    assert judge.split_started(rows) == (rows[:1], entries[1:])
    assert judge.split_started(rows, leave_range=True) == ([rows[0], rows[2]], entries[1:])
    unlisted = [replace(rows[0], is_whole=False), *rows[1:]]
    assert Judge(ends).split_started(unlisted) == ([], entries)


@pytest.mark.parametrize(
    ("outcome", "counts"), [(Outcome.MIGRATED, True), (Outcome.KEPT, True), (Outcome.CHANGED, False)]
)
def test_a_row_behind_the_first_that_did_not_move_goes_back_as_well(outcome: Outcome, counts: bool) -> None:
    first, second, third = (Entry(str(number), "") for number in (1, 2, 3))
    results = [EntryResult(first, Outcome.MIGRATED), EntryResult(third, outcome)]
    counted, rest = choose_counted(Performed(results, [second, third]))
    assert (len(counted), list(rest)) == ((2, [second]) if counts else (1, [second, third]))
