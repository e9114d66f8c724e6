"""A process claims as many batches as its limit of objects in flight needs, on the connections that it may have."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import timedelta
from threading import Event

import psycopg
import pytest

from rowferry.db.connection import connect
from rowferry_worker import daemon, slot
from rowferry_worker.claim_turns import ClaimTurns
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.options import Options
from rowferry_worker.scheduling.claimed_entries import ClaimedEntries
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.slots import bound_slots
from rowferry_worker.state import WorkerState
from rowferry_worker.supervisor.supervisor import bound_processes
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.roles import grant, log_in, new_role
from support.processes.processes import wait_for
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog

CLAIMED = "select from rowferry.batch_attempt where finished_at is null"
SESSIONS = """
select from pg_stat_activity where application_name ~ '^rowferry worker' and datname = current_database()
"""


@pytest.mark.parametrize(
    ("connections", "workers", "pooled", "slots"),
    [
        (None, 1, False, 16),
        (24, 1, False, 16),
        (24, 4, False, 5),
        (24, 16, False, 1),
        (24, 100, False, 1),
        (1, 1, False, 1),
        (125, 4, False, 16),
        (125, 1, True, 16),
        (125, 2, True, 9),
        (125, 10, True, 1),
    ],
)
def test_all_workers_share_a_part_of_the_connections(
    connections: int | None, workers: int, *, pooled: bool, slots: int
) -> None:
    assert bound_slots(Options().max_batches, connections, workers, pooled=pooled) == slots


def test_the_slot_that_waits_for_room_wakes_as_soon_as_there_is_some() -> None:
    claimed_entries, limit = ClaimedEntries(lambda: sum(limit)), [8]

    def raise_limit() -> None:
        limit.append(100)
        claimed_entries.note_change()

    with ThreadPoolExecutor(1) as pool:
        for change in (lambda: claimed_entries.note(1, 3), lambda: claimed_entries.forget(1), raise_limit):
            claimed_entries.note(1, 20)
            waiting = pool.submit(claimed_entries.wait_for_room, 60)
            wait_for(lambda: not claimed_entries._has_room.is_set())
            assert not waiting.done()
            change()
            assert waiting.result(60)


def test_a_slot_that_does_not_get_its_turn_goes_without_it_and_misses_no_end_of_a_batch() -> None:
    turns, stop = ClaimTurns(), Event()
    assert turns.take(timedelta(0), unless=stop.is_set)
    assert not turns.take(timedelta(0), unless=stop.is_set)
    stop.set()
    assert not turns.take(timedelta(minutes=1), unless=stop.is_set)
    turns.give()
    assert turns.take(timedelta(0), unless=stop.is_set), "who has gone is not waited for"
    stop.clear()
    turns.note_end()
    assert turns.wait_for_end(timedelta(seconds=60), stop.is_set)
    assert not turns.wait_for_end(timedelta(0), stop.is_set), "it is worth one look"


def test_batches_in_hand_follow_the_limit(migration: Migration, log: RequestLog) -> None:
    """Batches of one entry: eight of them are twice the limit of four."""
    migration.given(40, 1)
    hold = log.holding(lambda seen: seen.writes_object)
    with hold as held, migration.workers(1, "--parallel=4", "--min-parallel=4"):
        eventually(lambda: len(held) == 4 and len(migration.execute(CLAIMED)) >= 8)
        assert len(migration.execute(CLAIMED)) == 8
        assert len(migration.execute(SESSIONS)) == 8, "who has the turn to claim connects when it claims"


def test_a_bound_on_rows_holds_back_claims(migration: Migration) -> None:
    """Batches whose rows wait for their turn have transactions open: no more are claimed than the bound needs."""
    migration.plan["database"] = {"max_rows_per_second": 2}
    migration.given(80, 10)
    claimed: set[int] = set()
    with migration.workers(1, "--parallel=64", "--min-parallel=64"):

        def has_migrated_two_batches() -> bool:
            claimed.add(len(migration.execute(CLAIMED)))
            return migration.counts().get("migrated", 0) >= 20

        eventually(has_migrated_two_batches)
    assert claimed <= {0, 1, 2}
    assert 2 in claimed


def test_a_batch_that_runs_alone_keeps_no_others_claimed(migration: Migration, log: RequestLog) -> None:
    """They would wait for its end, each with a transaction open: one at most is claimed before it begins."""
    migration.given(40, 1)
    migration.execute("update rowferry.batch_queue set crashes = 1 where id = 1")
    hold = log.holding(lambda seen: seen.writes_object)
    with hold as held, migration.workers(1, "--parallel=64", "--min-parallel=64"):
        eventually(lambda: len(held) == 1)
        for _ in range(50):  # each gives time for a claim
            assert len(migration.execute(SESSIONS)) <= 2
            assert len(held) == 1
            time.sleep(0.01)


def test_the_last_object_of_a_batch_keeps_no_other_waiting(migration: Migration, log: RequestLog) -> None:
    migration.given(60, 10)
    hold = log.holding(lambda seen: seen.writes_object and seen.key.endswith("/u5/me.png"))
    with hold as held, migration.workers(1, "--parallel=4", "--min-parallel=4"):
        eventually(lambda: [batch["status"] for batch in migration.batches()] == ["INIT"] + ["DONE"] * 5)
        assert len(held) == 1


@pytest.fixture
def state(table: EntryTable) -> Iterator[WorkerState]:
    del table  # DATABASE_URL
    contexts = MigrationContextCache(1)
    with closing(Ledger("test")) as ledger:
        yield WorkerState("test", ["migrate"], ledger, contexts, CopyScheduler(1))
        contexts.close()


@pytest.fixture
def slots(state: WorkerState) -> Iterator[daemon.Slots]:
    """Those of a process that has begun to ask the queue."""
    slots = daemon.Slots(state)
    slots.start()
    try:
        wait_for(lambda: state.turns.is_taken)
        yield slots
    finally:
        state.stopping.set()
        wait_for(lambda: not slots.are_running())


@pytest.fixture
def _soon_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot, "NOT_NEEDED_AFTER", timedelta(seconds=0.2))


@pytest.mark.usefixtures("_soon_not_needed")
def test_an_idle_process_has_one_slot(table: EntryTable, slots: daemon.Slots) -> None:
    """Its others have ended, and their connections are closed; what it asks, one slot asks."""
    with slots._lock:
        for _ in range(5):  # as if each had just run a batch
            slots._start()
        assert len(slots._running) == 6
    wait_for(lambda: len(slots._running) == 1)
    wait_for(lambda: len(table.execute(SESSIONS)) == 1)


def test_slots_beyond_the_bound_end_when_other_workers_come(state: WorkerState, slots: daemon.Slots) -> None:
    with slots._lock:
        slots._start()
    state.cluster.connections, state.cluster.size = 24, 50
    assert slots.are_too_many()
    first, second = list(slots._running)
    assert slots.may_end(second)
    assert not slots.may_end(first), "one goes on"


def test_a_worker_makes_do_with_the_connections_that_it_gets(migration: Migration) -> None:
    """The role has three left: the ledger's and two slots'; each refusal is logged, and not repeated all the time."""
    migration.given(60, 2)
    with new_role(migration.dsn, "connection limit 8") as role, ExitStack() as others:
        grant(migration, {"worker": role})
        dsn = log_in(migration, role)
        for _ in range(5):
            others.enter_context(psycopg.connect(dsn))
        arguments = ("--until-empty", "--min-parallel=16", "--parallel=16")
        with migration.workers(1, *arguments, DATABASE_URL=dsn) as (worker,):
            assert worker.wait() == 0
            assert 0 < worker.messages().count("database unavailable, retrying") <= 3
    assert migration.counts() == {"migrated": 60}
    assert migration.verdicts() == ["DONE"] * 30
    migration.audit()


def test_processes_that_get_no_connection_for_a_batch_leave_theirs_to_others(migration: Migration) -> None:
    """Where connections are as many as processes, each has a ledger and none a batch; screens say so."""
    migration.write_plan()
    migration.given(60, 10)
    with new_role(migration.dsn, "connection limit 5") as role, ExitStack() as others:
        grant(migration, {"worker": role})
        dsn = log_in(migration, role)
        sessions = [others.enter_context(psycopg.connect(dsn)) for _ in range(4)]
        with migration.workers(1, "--until-empty", "--processes=4", DATABASE_URL=dsn) as (worker,):
            words = f"for a connection: role {role} has a limit of 5"
            eventually(lambda: words in migration.run("status", "--no-objects").stdout)
            assert "for a connection: role" in migration.run("watch", "--once").stdout
            assert words in migration.run("queues").stdout
            assert words in migration.run("errors").stdout
            stands = "select what_to_do from rowferry.migration_state where state = 'no_workers'"
            eventually(lambda: f"(role {role} has a limit of 5)" in str(migration.execute(stands)))
            assert migration.counts() == {}
            sessions[0].close()
            assert worker.wait() == 0
    assert migration.counts() == {"migrated": 60}
    migration.audit()


@pytest.mark.parametrize(("limit", "processes"), [(2, 1), (4, 1), (5, 2), (9, 4), (-1, 4)])
def test_no_more_processes_start_than_connections_allow(
    limit: int, processes: int, migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two each; one of a role's limit is left for screens."""
    with new_role(migration.dsn, f"connection limit {limit}") as role:
        grant(migration, {"worker": role})
        monkeypatch.setenv("DATABASE_URL", log_in(migration, role))
        with connect("test") as connection:
            assert bound_processes(connection, 4) == processes


def test_the_turn_is_given_back_by_a_slot_that_fails(state: WorkerState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot, "claim_batch", lambda *_: 1 / 0)
    slots = daemon.Slots(state)
    slots.start()
    wait_for(lambda: not slots.are_running())
    assert isinstance(state.reason, ZeroDivisionError)
    assert not state.turns.is_taken
