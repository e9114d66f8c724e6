"""What the ledger owes is said before anything else, so that nobody takes a loss for a crash."""

from contextlib import closing

import pytest

from entry_table import EntryTable
from held_batches import hold
from rowferry.database import connect
from rowferry.errors import DatabaseUnavailable
from rowferry_worker.claim import begin_attempt, claim_batch
from rowferry_worker.ledger import Ledger


def test_another_slot_of_the_same_process_does_not_take_a_loss_for_a_crash(ten: EntryTable) -> None:
    """It claims the batch as soon as the server has dropped the lost connection, before the loser is back."""
    with closing(Ledger("test")) as ledger:
        with connect("worker loser") as loser:
            batch = claim_batch(loser, ["migrate"])
            assert batch is not None
            lost = begin_attempt(ledger, batch, "test")
            loser.rollback()
        ledger.owe("end_attempt", lost.id, "LOST", "the connection was lost")
        with connect("worker other") as other:
            batch = claim_batch(other, ["migrate"])
            assert batch is not None
            attempt = begin_attempt(ledger, batch, "test")
            other.rollback()
    assert (attempt.number, attempt.crashes) == (1, 0)
    assert ten.verdicts() == ["LOST", None]


def test_what_is_owed_stays_owed_while_the_database_is_away(ten: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold(ten) as held, closing(Ledger("other")) as ledger:
        ledger.owe("end_attempt", held.attempt.id, "LOST", "the connection was lost")
        with monkeypatch.context() as away:
            away.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/nothing")
            with pytest.raises(DatabaseUnavailable):
                ledger.settle()
        assert ten.verdicts() == [None]
        ledger.settle()
        assert ten.verdicts() == ["LOST"]


def test_what_was_said_once_is_not_said_again(ten: EntryTable) -> None:
    with hold(ten) as held:
        held.ledger.owe("end_attempt", held.attempt.id, "RELEASED", "first")
        held.ledger.settle()
        ten.execute("update rowferry.batch_attempt set verdict = null")
        held.ledger.settle()
    assert ten.verdicts() == [None]
