"""A lost session of the ledger records nothing late, and its earlier records are not misread."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import timedelta
from threading import Lock

import psycopg
import pytest

from rowferry.batch import Attempt
from rowferry.db import timeouts
from rowferry.db.connection import connect
from rowferry.errors import DatabaseBusy, DatabaseUnavailable
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.ledger import Ledger
from support.entries.entry_table import EntryTable
from support.postgres.relay import silent_after_connecting
from support.postgres.roles import grant, log_in, new_role
from support.processes.processes import wait_for
from support.queue.held_batches import call_and_lose_the_answer, claim

WAIT = "perform set_config('lock_timeout', '0', true); perform pg_advisory_xact_lock_shared(42); return null;"
AT_COMMIT = "after insert on rowferry.batch_attempt deferrable initially deferred"
"""A commit may take longer than its client waits, when a synchronous standby is slow."""
WAITING = "select 1 from pg_stat_activity where wait_event = 'advisory' and datname = current_database()"


def test_an_attempt_that_is_recorded_after_its_worker_gave_it_up_is_no_crash(
    ten: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lost session is still at it when the worker is back on another one, and would commit behind its back."""
    ten.add_trigger(WAIT, AT_COMMIT, kind="constraint")
    monkeypatch.setattr(timeouts, "ANSWER_DEADLINE", timedelta(seconds=3))
    monkeypatch.setenv(timeouts.LOCK_TIMEOUT, "1")
    with (
        silent_after_connecting(ten.dsn) as (slow, _),
        closing(Ledger("test")) as ledger,
        connect("worker") as connection,
        psycopg.connect(ten.dsn, autocommit=True) as at_commit,
    ):
        batch = claim(connection)
        with monkeypatch.context() as away:
            away.setenv("DATABASE_URL", slow)
            ledger.flush()
        at_commit.execute("select pg_advisory_lock(42)")
        with pytest.raises(DatabaseUnavailable):
            begin_attempt(ledger, batch, "test")
        ledger.flush()
        at_commit.execute("select pg_advisory_unlock(42)")
        wait_for(lambda: not ten.execute(WAITING))
        attempt = begin_attempt(ledger, batch, "test")
        connection.rollback()
    assert (attempt.number, attempt.crashes) == (1, 0)
    assert ten.verdicts()[-1] is None
    assert None not in ten.verdicts()[:-1]


class TurnThatIsTaken:
    """Stands for the ledger's lock; as soon as the first call is through, another thread has the turn."""

    def __init__(self, other: Callable[[], object]) -> None:
        self._lock, self._other = Lock(), [other]

    def acquire(self, timeout: float = -1) -> bool:
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()
        if self._other:
            self._other.pop()()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def test_a_slot_that_waits_for_the_ledger_hears_of_the_loss_before_it_speaks(
    ten: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has claimed the batch that the loser's session gave free, and waits while the loser's call fails."""
    seen: list[Attempt] = []
    with (
        closing(Ledger("test")) as ledger,
        connect("worker") as loser,
        connect("worker") as other,
        ExitStack() as until,
    ):

        def take_over() -> None:
            until.close()
            loser.rollback()
            batch = claim(other)
            seen.append(begin_attempt(ledger, batch, "test"))

        batch = claim(loser)
        monkeypatch.setattr(ledger, "_turn", TurnThatIsTaken(take_over))
        breaking = until.enter_context(monkeypatch.context())
        breaking.setattr("rowferry_worker.ledger.call", call_and_lose_the_answer)
        with pytest.raises(DatabaseUnavailable):
            begin_attempt(ledger, batch, "test")
        ledger.flush()
        other.rollback()
    assert [(attempt.number, attempt.crashes) for attempt in seen] == [(1, 0)]
    assert ten.verdicts() == ["LOST", None]


def test_only_the_session_that_a_worker_has_lost_is_ended(ten: EntryTable) -> None:
    with closing(Ledger("one")) as one, closing(Ledger("two")) as two:
        one.flush()
        two.flush()
        lost = one._connection
        one._connection = None
        one.flush()
        two.flush()
        assert lost is not None
        with pytest.raises(psycopg.errors.AdminShutdown):
            lost.execute("select 1")
        lost.close()


@pytest.mark.parametrize("hardening", ["select", "revoke execute on function pg_terminate_backend from public"])
def test_a_ledger_says_nothing_while_its_last_session_cannot_be_ended(
    ten: EntryTable, monkeypatch: pytest.MonkeyPatch, hardening: str
) -> None:
    """It belongs to another role, which the worker may not signal; or this worker's may signal no session."""
    ten.execute(hardening)
    monkeypatch.setenv(timeouts.LOCK_TIMEOUT, "0.2")
    with new_role(ten.dsn) as role, closing(Ledger("test")) as ledger:
        ten.execute("select pg_advisory_lock(hashtextextended('rowferry.ledger test', 0))")
        grant(ten, {"worker": role})
        monkeypatch.setenv("DATABASE_URL", log_in(ten, role))
        for _ in range(2):
            with pytest.raises(DatabaseBusy):
                ledger.flush()
        ten.close()
        ledger.flush()
