"""A batch that loses its connection again and again is set aside; one that an outage hits once or twice is not."""

from contextlib import closing
from datetime import timedelta

import psycopg
import pytest

from rowferry.batch import Attempt, Batch
from rowferry.db.connection import connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch import crash_policy
from rowferry_worker.batch.crash_policy import choose_wait
from rowferry_worker.ledger import Ledger
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.worker_process import eventually
from support.queue.held_batches import claim, hold
from support.s3.request_log import RequestLog

pytestmark = pytest.mark.versions

CULPRIT = 7
END_ITS_BACKEND = f"""
    if new.id = {CULPRIT} then
        insert into public.strikes values (default);
        perform pg_terminate_backend(pg_backend_pid());
        perform pg_sleep(10);
    end if;
    return new;
"""
STRIKES = "create table public.strikes (n bigint generated always as identity)"
SESSIONS = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name ~ '^rowferry worker'"
"""Those of slots; the ledgers' go on."""


def strike(table: EntryTable) -> int:
    """Return how often the culprit was updated: a sequence forgets nothing."""
    (row,) = table.execute("select last_value as n from public.strikes_n_seq")
    return int(row["n"])


def test_a_row_whose_update_ends_its_backend_ends_in_error_after_bounded_losses(versitygw_migration: Migration) -> None:
    migration = versitygw_migration.fill(8)
    migration.execute(STRIKES)
    migration.add_trigger(END_ITS_BACKEND)
    migration.enqueue(batch_size=4)
    with migration.workers(2, "--until-empty", "--max-batches=1") as workers:
        eventually(lambda: let_time_pass(migration))
        assert [worker.wait() for worker in workers] == [0, 0]
    assert strike(migration) <= 12
    (failed,) = [batch for batch in migration.batches() if batch["status"] == "ERROR"]
    assert failed["payload"]["first"] == failed["payload"]["last"] == str(CULPRIT)
    assert "the connection was lost" in failed["error"]
    assert None not in migration.verdicts()
    migration.audit(legacy_left=[CULPRIT])


def let_time_pass(table: EntryTable) -> bool:
    """Bring forward what waits after a loss; return whether nothing waits any more."""
    table.execute("update rowferry.batch_attempt set finished_at = now() - interval '1 hour' where verdict = 'LOST'")
    table.make_due()
    return "INIT" not in table.statuses()


def begin(ledger: Ledger, table: EntryTable, worker_id: str) -> tuple[Batch, Attempt]:
    table.make_due()
    with connect("worker") as connection:
        batch = claim(connection)
        attempt = begin_attempt(ledger, batch, worker_id)
        connection.rollback()
    return batch, attempt


def lose(table: EntryTable, times: int) -> tuple[Batch, Attempt]:
    """Lose the batch so often, and return the attempt after."""
    with closing(Ledger("test")) as ledger:
        for _ in range(times):
            _, lost = begin(ledger, table, "test")
            ledger.call("end_attempt", lost.id, "LOST", "the connection was lost")
        return begin(ledger, table, "test")


@pytest.fixture
def _long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, what waits after a loss still waits when it is looked at."""
    monkeypatch.setattr(crash_policy, "LOSS_WAIT", timedelta(minutes=4))


@pytest.mark.usefixtures("_long_waits")
def test_a_batch_that_was_lost_once_may_be_run_at_once_and_waits_after_the_second_time(ten: EntryTable) -> None:
    batch, attempt = lose(ten, 1)
    assert (attempt.losses, choose_wait(batch, attempt).total_seconds()) == (1, 0)
    batch, attempt = lose(ten, 1)
    assert attempt.losses == 2
    assert choose_wait(batch, attempt).total_seconds() > 0
    ten.execute("update rowferry.batch_attempt set finished_at = finished_at - interval '1 hour'")
    with closing(Ledger("test")) as ledger:
        batch, attempt = begin(ledger, ten, "test")
    assert choose_wait(batch, attempt).total_seconds() == 0  # once for each loss


@pytest.mark.usefixtures("_long_waits")
@pytest.mark.parametrize("verdict", ["RETRY", "RELEASED"])
def test_a_batch_waits_from_its_last_loss_on_whatever_ended_otherwise_since(ten: EntryTable, verdict: str) -> None:
    lose(ten, 2)
    ten.execute("update rowferry.batch_attempt set finished_at = now() - interval '1 hour' where verdict = 'LOST'")
    with closing(Ledger("test")) as ledger:
        _, attempt = begin(ledger, ten, "test")
        ledger.call("end_attempt", attempt.id, verdict, "just now")
        batch, attempt = begin(ledger, ten, "test")
    assert attempt.since_loss is not None
    assert attempt.since_loss >= timedelta(hours=1)
    assert choose_wait(batch, attempt) == timedelta(0)


def test_a_batch_that_waits_is_put_back_and_others_have_their_turn(versitygw_migration: Migration) -> None:
    migration = versitygw_migration.given(2, 1)
    lose(migration, 2)
    migration.work()
    assert [batch["status"] for batch in migration.batches()] == ["INIT", "DONE"]
    assert "it waits before it is run again" in migration.batches()[0]["error"]
    migration.execute("update rowferry.batch_attempt set finished_at = finished_at - interval '1 hour'")
    migration.work_again()
    migration.audit()


def test_a_living_worker_whose_session_was_ended_is_not_counted_as_dead(migration: Migration, log: RequestLog) -> None:
    """It hears of it while S3 works; the batch is free at once."""
    migration.given(1, 1)
    with log.holding(lambda seen: seen.writes_object) as held, migration.workers(1, "--max-batches=1") as (worker,):
        eventually(lambda: held)
        worker.signal(19)  # SIGSTOP: it hears of nothing
        migration.execute(SESSIONS)
        with closing(Ledger("other")) as ledger:
            _, attempt = begin(ledger, migration, "other")
        worker.signal(18)
    assert (attempt.crashes, attempt.number) == (0, 1)


def test_a_worker_that_has_just_fallen_silent_is_waited_for(table: EntryTable) -> None:
    table.add_legacy(range(1)).enqueue(1)
    with closing(Ledger("silent")) as silent:
        silent.call("heartbeat", "silent", "h", 1, "0", 1, 1, ["migrate"])
        begin(silent, table, "silent")
    with closing(Ledger("other")) as ledger:
        table.execute("update rowferry.worker set last_seen_at = now() + interval '100 s'")
        batch, attempt = begin(ledger, table, "other")
        assert attempt.crashes == 0
        assert 0 < choose_wait(batch, attempt).total_seconds() <= 110
        table.execute("update rowferry.worker set last_seen_at = now() - interval '1 hour'")
        _, attempt = begin(ledger, table, "other")
        assert attempt.crashes == 0, "the database may have been away for an hour"
        ledger._connected_at -= 3600
        _, attempt = begin(ledger, table, "other")
        assert (attempt.crashes, attempt.unclear_for) == (1, None)


def test_of_two_workers_that_have_fallen_silent_the_one_that_is_dead_last_is_waited_for(ten: EntryTable) -> None:
    for name in ("first", "second"):
        with closing(Ledger(name)) as silent:
            silent.call("heartbeat", name, "h", 1, "0", 1, 1, ["migrate"])
            begin(silent, ten, name)
    ten.execute("update rowferry.worker set last_seen_at = now() + interval '1 hour' where id = 'first'")
    with closing(Ledger("other")) as ledger:
        _, attempt = begin(ledger, ten, "other")
        assert attempt.crashes == 0
        assert attempt.unclear_for is not None
        assert attempt.unclear_for > timedelta(minutes=30)
        ten.execute("update rowferry.worker set stopped_at = now() where id = 'second'")
        _, attempt = begin(ledger, ten, "other")
        assert (attempt.crashes, attempt.number) == (1, 2), "the other may still return"
        assert attempt.unclear_for is not None


HASH = "hashtextextended('rowferry.ledger gone', 0)"
OTHER_LOCKS = {
    "of two integers": f"select pg_advisory_lock(({HASH} >> 32)::int, ({HASH} << 32 >> 32)::int)",
    "of another worker": "select pg_advisory_lock(hashtextextended('rowferry.ledger another', 0))",
    "of other words": "select pg_advisory_lock(hashtextextended('gone', 0))",
}


LOCKED = """
select from pg_locks as l inner join pg_database as d on l.database = d.oid
where l.locktype = 'advisory' and d.datname = current_database()
"""


def begin_and_go(table: EntryTable) -> None:
    """Begin an attempt as a worker that ends, and wait until PostgreSQL has ended its session."""
    with closing(Ledger("gone")) as gone:
        begin(gone, table, "gone")
    eventually(lambda: not table.execute(LOCKED))


@pytest.mark.parametrize("lock", OTHER_LOCKS)
def test_no_lock_but_its_ledgers_says_that_a_worker_lives(ten: EntryTable, lock: str) -> None:
    begin_and_go(ten)
    ten.execute(OTHER_LOCKS[lock])
    with closing(Ledger("other")) as ledger:
        _, attempt = begin(ledger, ten, "other")
    assert (attempt.crashes, attempt.number) == (1, 2)


def test_a_ledger_of_another_database_says_nothing_of_a_worker_here(ten: EntryTable) -> None:
    begin_and_go(ten)
    with psycopg.connect(ten.dsn, dbname="postgres") as elsewhere, closing(Ledger("other")) as ledger:
        elsewhere.execute(f"select pg_advisory_lock({HASH})".encode())
        _, attempt = begin(ledger, ten, "other")
        assert attempt.crashes == 1


def test_the_attempts_of_a_batch_that_had_the_same_number_do_not_count(ten: EntryTable) -> None:
    with hold(ten):
        pass
    ten.execute("truncate rowferry.batch_queue restart identity cascade")
    ten.enqueue(10)
    with closing(Ledger("other")) as ledger:
        _, attempt = begin(ledger, ten, "other")
    assert (attempt.number, attempt.crashes) == (1, 0)


def test_a_transaction_timeout_of_the_server_ends_no_batch(any_database: str) -> None:
    with psycopg.connect(any_database, autocommit=True) as connection:
        if connection.info.server_version < 170000:
            pytest.skip("this PostgreSQL knows no transaction_timeout")
        name = connection.info.dbname
        connection.execute(f'alter database "{name}" set transaction_timeout = 60000'.encode())
    with closing(connect("test")) as ours:
        assert ours.execute("show transaction_timeout").fetchall() == [{"transaction_timeout": "0"}]
