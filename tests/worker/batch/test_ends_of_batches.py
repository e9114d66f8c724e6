"""How the work on a batch ends: verdict, rows and ledger agree, and the migration's troubles are counted."""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from rowferry.batch import Entry, Performed
from rowferry.errors import (
    DatabaseUnavailable,
    MigrationFault,
    UsageError,
    VerdictRefused,
)
from rowferry_worker.batch import run
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.migration import MigrationContext
from rowferry_worker.monitoring import metrics
from rowferry_worker.options import Options
from support.queue.batch_slot import Slot, end_with, settle


def claimed() -> float:
    return metrics.claimed_batches.labels("avatars", "note")._value.get()


def test_a_batch_that_is_given_up_is_as_it_was(slot: Slot) -> None:
    before = claimed()
    slot.run(end_with(BatchReleased("told to stop")))
    assert slot.table.verdicts() == ["RELEASED"], "at once, before another worker claims it"
    assert slot.end() == ("INIT", 0, ["RELEASED"], 0)
    assert slot.table.attempts()[0]["error"] == "told to stop"
    assert (claimed(), slot.state.backoff.troubles) == (before, {})


def test_an_interrupted_batch_is_lost(slot: Slot) -> None:
    with pytest.raises(KeyboardInterrupt):
        slot.run(end_with(KeyboardInterrupt()))
    slot.connection.rollback()
    assert slot.end() == ("INIT", 0, ["LOST"], 0)


def test_an_attempt_is_over_however_it_ended(slot: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[run.ClaimedBatch] = []
    really = run.ClaimedBatch.run

    def keep(self: run.ClaimedBatch) -> None:
        made.append(self)
        really(self)

    monkeypatch.setattr(run.ClaimedBatch, "run", keep)
    slot.run(end_with(BatchReleased("told to stop")))
    slot.run()
    assert [each.attempt for each in made] == [None, None]


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


def test_a_worker_that_may_write_no_verdict_ends(slot: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise UsageError("grant it")

    monkeypatch.setattr(run, "write_result", refuse)
    with pytest.raises(UsageError, match="grant it"):
        slot.run()
    assert slot.end() == ("INIT", 0, ["RELEASED"], 0)


def test_a_verdict_that_is_refused_twice_is_a_loss(slot: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise VerdictRefused("by a trigger")

    monkeypatch.setattr(run, "write_result", refuse)
    with pytest.raises(DatabaseUnavailable, match="by a trigger"):
        slot.run()
    slot.connection.rollback()
    assert slot.end() == ("INIT", 0, ["LOST"], 0)


def test_a_refused_commit_is_a_loss(slot: Slot) -> None:
    slot.table.execute(
        "create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$"
    )
    slot.table.execute(
        "create constraint trigger refuse after insert on public.notes deferrable initially deferred "
        "for each row execute function public.refuse()"
    )
    with pytest.raises(DatabaseUnavailable, match="did not commit"):
        slot.run()
    slot.connection.rollback()
    assert slot.end() == ("INIT", 0, ["LOST"], 0)


def test_any_other_error_takes_the_rows_back_and_counts_as_an_attempt(slot: Slot) -> None:
    slot.run(end_with(ValueError("a slip")))
    assert slot.end() == ("INIT", 1, ["RETRY"], 0)
    assert slot.table.batch()["error"] == "ValueError: a slip"


def test_an_error_of_the_database_is_told_in_our_words(slot: Slot) -> None:
    def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
        settle(context, entries)
        context.connection.execute("select 1 from public.nowhere")
        return Performed([])

    slot.run(perform)
    status, _, verdicts, notes = slot.end()
    assert (status, verdicts, notes) == ("ERROR", ["ERROR"], 0)
    assert "nowhere" in slot.table.batch()["error"]


def test_a_connection_that_the_server_ends_in_the_work_is_a_loss(slot: Slot) -> None:
    def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
        slot.table.execute("select pg_terminate_backend(%s, 100000)", (context.connection.info.backend_pid,))
        return settle(context, entries)

    before = claimed()
    with pytest.raises(DatabaseUnavailable):
        slot.run(perform)
    assert slot.end() == ("INIT", 0, ["LOST"], 0)
    assert claimed() == before


def test_the_work_knows_when_its_time_is_over(slot: Slot) -> None:
    slot.state.options = Options(time_budget=timedelta(seconds=77))
    left: list[float] = []

    def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
        left.append(context.deadline - time.monotonic())
        return settle(context, entries)

    slot.run(perform)
    assert 0 < left[0] <= 77
