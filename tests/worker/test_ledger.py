"""Pending attempt records are flushed before anything else: no other slot takes a loss for a crash."""

from contextlib import closing
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from rowferry.db.connection import connect
from rowferry.errors import DatabaseUnavailable
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.run import process_batch
from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring.heartbeat import ClusterState, Heartbeat
from rowferry_worker.queues import find_queue
from rowferry_worker.scheduling.scheduler import CopyScheduler
from support.entries.entry_table import EntryTable
from support.queue.held_batches import Held, call_and_lose_the_answer, claim, crash, hold
from support.queue.queue_states import report_nothing


def test_another_slot_of_the_same_process_does_not_take_a_loss_for_a_crash(ten: EntryTable) -> None:
    """It claims the batch as soon as the server has dropped the lost connection, before the loser is back."""
    with closing(Ledger("test")) as ledger:
        with connect("worker loser") as loser:
            batch = claim(loser)
            lost = begin_attempt(ledger, batch, "test")
            loser.rollback()
        ledger.enqueue("end_attempt", lost.id, "LOST", "the connection was lost")
        with connect("worker other") as other:
            batch = claim(other)
            attempt = begin_attempt(ledger, batch, "test")
            other.rollback()
    assert (attempt.number, attempt.crashes) == (1, 0)
    assert ten.verdicts() == ["LOST", None]


def test_an_attempt_of_which_the_worker_never_heard_is_no_crash(
    ten: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL has recorded it, and the connection breaks before the answer is there."""
    with closing(Ledger("test")) as ledger, connect("worker") as connection:
        batch = claim(connection)
        with monkeypatch.context() as breaking:
            breaking.setattr("rowferry_worker.ledger.call", call_and_lose_the_answer)
            with pytest.raises(DatabaseUnavailable):
                begin_attempt(ledger, batch, "test")
        assert ten.verdicts() == [None]
        attempt = begin_attempt(ledger, batch, "test")
        connection.rollback()
    assert (attempt.number, attempt.crashes) == (1, 0)
    assert ten.verdicts() == ["LOST", None]


def test_what_is_owed_stays_owed_while_the_database_is_away(ten: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold(ten) as held, closing(Ledger("other")) as ledger:
        held.ledger.close()
        ledger.enqueue("end_attempt", held.attempt.id, "LOST", "the connection was lost")
        with monkeypatch.context() as away:
            away.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/nothing")
            with pytest.raises(DatabaseUnavailable):
                ledger.flush()
        assert ten.verdicts() == [None]
        ledger.flush()
        assert ten.verdicts() == ["LOST"]


def test_what_was_said_once_is_not_said_again(ten: EntryTable) -> None:
    with hold(ten) as held:
        held.ledger.enqueue("end_attempt", held.attempt.id, "RELEASED", "first")
        held.ledger.flush()
        ten.execute("update rowferry.batch_attempt set verdict = null")
        held.ledger.flush()
    assert ten.verdicts() == [None]


def test_a_worker_whose_connection_was_lost_since_its_last_beat_signs_off_and_settles_all_the_same(
    ten: EntryTable,
) -> None:
    with hold(ten) as held, closing(held.ledger):
        heartbeat = Heartbeat(held.ledger, "test", ["migrate"], report_nothing, lambda: True, ClusterState(), Event())
        heartbeat.send()
        ten.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name ~ '^rowferry ledger'"
        )
        held.ledger.enqueue("end_attempt", held.attempt.id, "LOST", "the connection was lost")
        heartbeat.deregister()
        assert ten.verdicts() == ["LOST"]
        (worker,) = ten.execute("select stopped_at from rowferry.worker")
        assert worker["stopped_at"] is not None


def test_a_batch_of_one_that_killed_its_workers_is_not_run_again(ten: EntryTable) -> None:
    ten.execute("update rowferry.batch_queue set entry_count = 1")
    crash(ten, 3)
    with hold(ten) as held:
        process_batch(context_without_route(held))
    batch = ten.batch()
    assert (batch["status"], batch["failed"], batch["attempts"]) == ("ERROR", 1, 3)
    assert batch["error"] == "the worker died 3 times while it held this batch; it is not run again"
    assert ten.verdicts() == [None, None, None, "ERROR"]
    ten.check_balance()


def context_without_route(held: Held) -> BatchContext:
    """Return the context of a batch that fails as soon as it is performed."""
    migration: Any = SimpleNamespace(
        name="avatars", plan=SimpleNamespace(name="avatars"), read_settings=lambda spec: spec.settings()
    )
    return BatchContext(
        find_queue("migrate"), held.batch, held.attempt, held.connection, migration, CopyScheduler(1), Event()
    )


def test_the_last_attempt_that_is_left_is_still_made(ten: EntryTable) -> None:
    crash(ten, 2)
    with hold(ten) as held:
        result = process_batch(context_without_route(held))
    assert "AttributeError" in (result.judgement.error or "")
    assert ten.batch()["status"] == "ERROR"
