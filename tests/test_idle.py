"""A rerun over finished work goes through many batches at a time, and leaves alone those that have work."""

from contextlib import ExitStack, closing
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from entry_table import TO, EntryTable
from migration import Migration
from rowferry.batch import Attempt, Batch
from rowferry.database import Connection, connect
from rowferry.errors import DatabaseUnavailable
from rowferry_worker import idle
from rowferry_worker.claim import begin_attempt, begin_attempts, claim_batch, claim_more
from rowferry_worker.flight import Flight
from rowferry_worker.ledger import Ledger
from rowferry_worker.queues import find_queue
from rowferry_worker.route import Routes
from rowferry_worker.shared import Shared
from rowferry_worker.slot import Slot
from rowferry_worker.verdict import write_idle

MOVE_ALL = "update public.avatars set path = replace(path, 'image/', 'avatar/')"
TRANSACTIONS = "select count(distinct xmin::text)::int as count from rowferry.batch_queue"


@pytest.fixture
def rerun(versitygw_migration: Migration) -> Migration:
    """A hundred batches of one entry each, whose rows were all rewritten meanwhile."""
    migration = versitygw_migration
    migration.add_legacy(range(100))
    migration.enqueue(1)
    migration.execute(MOVE_ALL)
    return migration


def claim_several(connection: Connection, most: int) -> list[Batch]:
    first = claim_batch(connection, ["migrate"])
    assert first is not None
    return [first, *claim_more(connection, first, most - 1)]


def test_a_rerun_finishes_idle_batches_many_at_a_time(rerun: Migration) -> None:
    rerun.work()
    assert rerun.statuses() == {"DONE"}
    assert rerun.verdicts() == ["DONE"] * 100
    assert {batch["attempts"] for batch in rerun.batches()} == {1}
    assert {batch["entry_count"] for batch in rerun.batches()} == {0}
    assert rerun.execute(TRANSACTIONS)[0]["count"] <= 10
    rerun.check_balance()


def test_a_batch_with_work_among_idle_ones_goes_back_and_is_worked_on_alone(rerun: Migration) -> None:
    rerun.execute("delete from public.avatars where id in (50, 51)")
    rerun.fill(2, start=50)
    rerun.work()
    assert rerun.counts() == {"migrated": 2}
    assert rerun.statuses() == {"DONE"}
    rerun.audit()
    worked_on = [batch for batch in rerun.batches() if batch["migrated"]]
    assert len(worked_on) == 2
    assert len({batch["started_at"] for batch in worked_on}) == 2
    assert {batch["attempts"] for batch in rerun.batches()} == {1}  # what was given back cost nothing
    assert sorted(set(rerun.verdicts())) == ["DONE", "RELEASED"]


def test_the_rows_of_a_batch_with_work_are_not_locked_while_others_are_looked_over(
    rerun: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    rerun.execute("delete from public.avatars where id in (50, 51)")
    rerun.fill(2, start=50)
    locked: list[Any] = []

    def look_at_rows(connection: Connection, held: list[tuple[Batch, Attempt]]) -> None:
        free = rerun.execute("select id from public.avatars for update skip locked")
        locked.append(100 - len(free))
        write_idle(connection, held)

    monkeypatch.setattr(idle, "write_idle", look_at_rows)
    rerun.work()
    assert locked
    assert set(locked) == {0}


def test_a_worker_that_dies_while_it_looks_over_costs_each_batch_an_attempt(rerun: Migration) -> None:
    with closing(Ledger("dead")) as ledger, connect("dead") as connection:
        batches = claim_several(connection, 10)
        begin_attempts(ledger, batches, "dead")
        connection.rollback()
    rerun.work()
    assert rerun.statuses() == {"DONE"}
    assert sorted(batch["attempts"] for batch in rerun.batches()) == [1] * 90 + [2] * 10
    with connect("test") as connection:
        assert connection.execute("select count(*) as n from rowferry.batch_attempt").fetchall() == [{"n": 110}]


def test_a_batch_with_a_crash_behind_it_is_claimed_alone(rerun: Migration) -> None:
    """So that a batch that kills its workers takes no others with it."""
    with closing(Ledger("dead")) as ledger, connect("dead") as connection:
        first, second, third = claim_several(connection, 3)
        begin_attempt(ledger, second, "dead")
        connection.rollback()
        assert [batch.id for batch in claim_several(connection, 4)] == [first.id, *range(third.id, third.id + 3)]
        assert claim_more(connection, second, 4) == []


def test_nothing_is_looked_over_beside_a_batch_that_has_to_be_alone(rerun: Migration) -> None:
    """If that one kills the worker again, no other batch has an attempt to lose."""
    with ExitStack() as until:
        shared = Shared("test", ["migrate"], Ledger("test"), Routes(4), Flight(4))
        until.callback(shared.ledger.close)
        until.callback(shared.routes.close)
        shared.stopping.set()  # so that nobody waits for room
        connection, slot = until.enter_context(closing(connect("test"))), Slot(shared)

        def take_turn() -> None:
            batch = claim_batch(connection, ["migrate"])
            assert batch is not None
            slot._hold(connection, batch)

        take_turn()
        with shared.company.joined(alone=True, unless=Event()):
            take_turn()
            assert rerun.verdicts() == ["DONE"]
        take_turn()
        assert rerun.verdicts() == ["DONE"] * 3


def test_only_what_is_due_in_the_same_migration_and_queue_is_claimed_with_a_batch(table: EntryTable) -> None:
    table.add_legacy(range(6))
    table.enqueue(1)
    other = "insert into rowferry.migration (name, plan) values ('other', '{}') returning id"
    (row,) = table.execute(other)
    queue = "update rowferry.batch_queue set "
    table.execute(f"{queue} queue_name = 'verify' where id = 2")
    table.execute(f"{queue} run_after = now() + interval '1 hour' where id = 3")
    table.execute(f"{queue} migration_id = %s where id = 4", (row["id"],))
    with connect("one") as one, connect("two") as two:
        two.execute("select from rowferry.batch_queue where id = 5 for update")
        assert [batch.id for batch in claim_several(one, 10)] == [1, 6]


def test_a_connection_that_is_lost_meanwhile_gives_all_batches_back(
    rerun: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(connection: Connection, held: list[tuple[Batch, Attempt]]) -> None:
        rerun.execute("select pg_terminate_backend(%s)", (connection.info.backend_pid,))
        write_idle(connection, held)

    with rerun.at_work() as take_turn:
        take_turn()
        monkeypatch.setattr(idle, "write_idle", lose)
        with pytest.raises(DatabaseUnavailable):
            take_turn()
    assert rerun.verdicts() == ["DONE", None, None]  # the next call of the ledger, whosever, says LOST
    assert [batch["status"] for batch in rerun.batches()].count("INIT") == 99


def test_a_database_that_refuses_leaves_the_judgement_to_each_batch_alone(rerun: Migration) -> None:
    """Here the table is gone: each batch fails by itself, with the words of PostgreSQL."""
    with rerun.at_work() as take_turn:
        take_turn()
        rerun.execute("alter table public.avatars rename to hidden")
        take_turn()
        assert rerun.verdicts() == ["DONE", "RELEASED", "RELEASED"]
        take_turn()
    assert rerun.verdicts()[3:] == ["RETRY"] or rerun.verdicts()[3:] == ["ERROR"]
    assert "does not exist" in rerun.attempts()[-1]["error"]


def test_rows_of_the_rerun_are_never_touched(rerun: Migration) -> None:
    before = rerun.execute("select id, path, xmin::text from public.avatars order by id")
    rerun.work()
    assert rerun.execute("select id, path, xmin::text from public.avatars order by id") == before
    assert all(row["path"].startswith(TO) for row in before)


def test_a_queue_that_reads_what_it_pleases_is_never_looked_over(
    rerun: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "find_queue", lambda name: replace(find_queue(name), form=None))
    rerun.work()
    assert rerun.statuses() == {"DONE"}
    assert rerun.execute(TRANSACTIONS)[0]["count"] == 100
