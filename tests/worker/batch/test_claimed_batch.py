"""A claimed batch that is not begun: what is left of the claim, the ledger and the migration's troubles."""

import logging
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from rowferry.batch import Entry, Performed
from rowferry.errors import BucketNotFound, DatabaseUnavailable, QueueUnusable, Throttled, UsageError
from rowferry_worker.batch import run
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.migration import MigrationContext
from rowferry_worker.options import Options
from support.queue.batch_slot import Slot, end_with, fail_with, settle

UNTOUCHED = ("INIT", 0, [], 0)


def test_a_batch_is_done_with_its_rows_and_its_attempt(slot: Slot, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=run.__name__):
        slot.run()
    assert slot.end() == ("DONE", 1, ["DONE"], 30)
    (line,) = [record for record in caplog.records if record.message == "batch finished"]
    assert (line.levelno, vars(line)["verdict"], vars(line)["migrated"]) == (logging.INFO, "DONE", 30)
    assert "error" not in vars(line)
    assert vars(line)["seconds"] == round(vars(line)["seconds"], 3)


def test_a_migration_whose_servers_are_away_or_whose_replica_is_behind_is_skipped(
    slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(MigrationContext, "is_away", lambda _self: True)
        slot.run()
    assert slot.end() == UNTOUCHED
    monkeypatch.setattr(MigrationContext, "is_held_up", lambda _self: True)
    batch = slot.run()
    assert slot.end() == UNTOUCHED
    assert slot.state.backoff.passed_over() == [batch.migration_id]
    assert slot.state.backoff.unusable() == {}


UNUSABLE = [
    (UsageError("no credentials"), True),
    (BucketNotFound("NoSuchBucket", "gone"), True),
    (QueueUnusable("a newer plan"), False),
]
"""Why a migration cannot be used here, and whether that is so of all its queues."""


@pytest.mark.parametrize(("error", "is_of_all"), UNUSABLE)
def test_what_cannot_be_used_here_is_set_aside_until_it_can(
    slot: Slot, monkeypatch: pytest.MonkeyPatch, error: Exception, *, is_of_all: bool
) -> None:
    def find(*_: Any) -> MigrationContext:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(slot.state.migration_contexts, "find", find)
        batch = slot.run()
    assert slot.end() == UNTOUCHED
    line = (batch.migration_id, "note")
    assert list(slot.state.backoff.unusable()) == [batch.migration_id if is_of_all else line]
    slot.run(fail_with(Throttled("SlowDown", "later")))
    assert slot.state.backoff.unusable() == {}, "it can be used again, whatever becomes of its batches"


def test_a_worker_that_was_started_for_one_migration_ends_where_it_cannot_use_it(
    slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot.state.options = Options(end_when_unusable=True)
    monkeypatch.setattr(slot.state.migration_contexts, "find", lambda *_: (_ for _ in ()).throw(UsageError("no key")))
    with pytest.raises(UsageError, match="no key"):
        slot.run()
    assert slot.end() == UNTOUCHED


@pytest.mark.parametrize("crashes", [0, 1])
def test_a_part_of_what_has_crashed_workers_runs_alone(slot: Slot, crashes: int) -> None:
    slot.table.execute("update rowferry.batch_queue set crashes = %s", (crashes,))
    alone: list[bool] = []

    def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
        alone.append(slot.state.batch_lock.is_wanted_alone())
        return settle(context, entries)

    slot.run(perform)
    assert alone == [crashes > 0]
    assert slot.end()[0] == "DONE"


def test_a_batch_that_must_run_alone_waits_for_the_others_and_leaves_no_strike(slot: Slot) -> None:
    slot.table.execute(
        "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id) values (1, 0, 1, 'x')"
    )
    slot.state.stopping.set()  # so that it does not wait for long
    with slot.state.batch_lock.hold(alone=False, unless=slot.state.give_up):
        slot.run()
    assert slot.table.verdicts() == [None, "RELEASED"], "at once, before another worker claims it"
    assert slot.end() == ("INIT", 0, [None, "RELEASED"], 0)


def test_a_batch_that_a_stopping_worker_has_not_begun_is_free(slot: Slot) -> None:
    slot.state.stopping.set()
    with slot.state.batch_lock.hold(alone=True, unless=slot.state.give_up):
        slot.run()
    assert slot.end() == UNTOUCHED


def lose(slot: Slot, times: int) -> None:
    for number in range(times):
        with pytest.raises(DatabaseUnavailable):
            slot.run(end_with(DatabaseUnavailable("gone")))
        slot.connection.rollback()
        slot.state.ledger.flush()
        assert slot.table.verdicts() == ["LOST"] * (number + 1)


def test_a_batch_that_cannot_be_put_back_has_its_attempt_released(slot: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(slot, 2)

    def fail(*_: Any) -> None:
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(run, "write_failure", fail)
    with pytest.raises(psycopg.OperationalError):
        slot.run()
    slot.connection.rollback()
    assert slot.end() == ("INIT", 0, ["LOST", "LOST", "RELEASED"], 0)
