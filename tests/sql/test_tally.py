"""rowferry.progress is read from a tally, which says what a scan would say, however the queue is changed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, LiteralString

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg import errors, sql
from psycopg.rows import tuple_row

from rowferry.db.connection import Connection, call, connect
from rowferry.db.schema import initialise
from support.postgres.ordinary import as_superuser
from support.postgres.plans import explained

MIGRATIONS = "insert into rowferry.migration (name, plan) values ('one', '{}'), ('two', '{}')"
SCAN = """
select
    q.migration_id, q.queue_name, q.payload ->> 'entries' as label, count(*),
    count(*) filter (where q.status = 'INIT'), count(*) filter (where q.status = 'DONE'),
    count(*) filter (where q.status = 'ERROR'), sum(q.entry_count), sum(q.migrated), sum(q.kept), sum(q.changed),
    sum(q.deleted), coalesce(sum(q.missing) filter (where q.status <> 'INIT'), 0),
    coalesce(sum(q.conflict) filter (where q.status <> 'INIT'), 0),
    coalesce(sum(q.failed) filter (where q.status <> 'INIT'), 0), sum(q.bytes)
from rowferry.batch_queue as q group by 1, 2, 3
"""
TALLY = """
select
    migration_id, queue_name, label, batches, batches_init, batches_done, batches_error, entries, migrated, kept,
    changed, deleted, missing, conflict, failed, bytes
from rowferry.table_progress
"""
FAILURES = """
with listed as (
    select f.batch_id, f.outcome, f.reason, count(*) as entries
    from rowferry.entry_failure as f where f.outcome in ('missing', 'conflict', 'failed') group by 1, 2, 3
),
reasons as (
    select l.batch_id, l.outcome, l.reason, l.entries from listed as l
    union all
    select q.id, 'failed', q.error, q.failed - w.entries
    from rowferry.batch_queue as q
    cross join lateral (
        select coalesce(sum(l.entries), 0) as entries from listed as l where l.batch_id = q.id and l.outcome = 'failed'
    ) as w
    where q.failed > w.entries or (q.entry_count = 0 and q.finished_at is not null)
    union all
    select
        q.id, 'parked', 'set to ERROR by hand; `rowferry requeue` puts it back',
        q.entry_count - q.migrated - q.kept - q.changed - q.deleted - q.missing - q.conflict - q.failed
    from rowferry.batch_queue as q
    where q.finished_at is null or (q.entry_count > 0 and q.missing + q.conflict + q.failed = 0)
)
select q.migration_id, q.queue_name, r.outcome, r.reason, sum(r.entries)::bigint, count(*)
from rowferry.batch_queue as q inner join reasons as r on q.id = r.batch_id
where q.status = 'ERROR' group by 1, 2, 3, 4
"""
REASONS = """
select m.id, e.queue_name, e.outcome, e.reason, e.entries, e.batches
from rowferry.error_reasons as e inner join rowferry.migration as m on e.migration = m.name
"""
COUNTS = "select count(*) from rowferry.batch_tally"
INSERT = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count)
select 1 + i %% 2, case when i %% 3 = 0 then 'verify' else 'migrate' end,
    case when i %% 5 = 0 then '{}' else jsonb_build_object('entries', 't' || i %% 4, 'first', '1') end, i %% 7
from generate_series(1, %(many)s) as i
"""
BY_HAND: tuple[LiteralString, ...] = (
    "update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'",
    "update rowferry.batch_queue set status = 'ERROR', failed = 1 where status = 'INIT' and id % 3 = 0",
    "update rowferry.batch_queue set migration_id = 3 - migration_id where id % 4 = 0",
    'update rowferry.batch_queue set payload = \'{"entries": "t9"}\', bytes = bytes + 5 where id % 5 = 0',
    "update rowferry.batch_queue set missing = 3, conflict = 1 where id % 2 = 0 and status = 'INIT'",
    "delete from rowferry.batch_queue where id % 6 = 0",
    "with gone as (delete from rowferry.batch_queue where id % 7 = 0 returning *) "
    "update rowferry.batch_queue set kept = kept + 1 where id % 7 = 1 and status = 'INIT'",
    "insert into rowferry.batch_queue (id, migration_id, queue_name, payload, entry_count) overriding system value "
    "select 1, 1, 'migrate', '{}', 1 "
    "on conflict on constraint batch_queue_pkey do update set entry_count = 5, status = 'INIT'",
    "select rowferry.requeue()",
    "select rowferry.prune_batches('0 s', 2)",
    "select rowferry.recount_batches()",
    "truncate rowferry.batch_queue cascade",
)


LINES = [1, 2, 1, 2], ["migrate", "migrate", "verify", "verify"]


def read(connection: psycopg.Connection[Any], query: LiteralString) -> list[tuple[Any, ...]]:
    return sorted(connection.execute(query).fetchall(), key=str)


FAILED = st.lists(
    st.tuples(
        st.sampled_from(("missing", "conflict", "failed", "changed", "deleted")),
        st.sampled_from(("NoSuchKey", "Timeout")),
    ),
    max_size=3,
)


class Queue(RuleBasedStateMachine):
    """Three sessions with transactions of their own; a fourth compares what is committed."""

    dsn: str

    def __init__(self) -> None:
        super().__init__()
        self.until = ExitStack()

    @initialize()
    def begin(self) -> None:
        self.eye = self.until.enter_context(psycopg.connect(self.dsn, autocommit=True))
        self.eye.execute(
            "truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure restart identity"
        )
        self.sessions: list[Connection] = []
        for _ in range(3):
            session = self.until.enter_context(connect("test"))
            session.execute("set lock_timeout = '20ms'")
            session.commit()
            self.sessions.append(session)

    @contextmanager
    def acting(self, number: int) -> Iterator[Connection]:
        """A session that meets a lock, or breaks a constraint, rolls back."""
        session = self.sessions[number]
        try:
            yield session
        except (errors.LockNotAvailable, errors.DeadlockDetected, errors.IntegrityError):
            session.rollback()

    @rule(who=st.integers(0, 2), many=st.integers(1, 20))
    def insert(self, who: int, many: int) -> None:
        with self.acting(who) as session:
            session.execute(INSERT, {"many": many})

    @rule(who=st.integers(0, 2), how=st.sampled_from(BY_HAND))
    def change_by_hand(self, who: int, how: LiteralString) -> None:
        with self.acting(who) as session:
            session.execute(how)

    @rule(who=st.integers(0, 2), how=st.sampled_from(BY_HAND))
    def change_under_a_savepoint_and_regret_it(self, who: int, how: LiteralString) -> None:
        with self.acting(who) as session, session.transaction() as savepoint:
            session.execute(how)
            raise psycopg.Rollback(savepoint)

    @rule(who=st.integers(0, 2), verdict=st.sampled_from(["DONE", "ERROR", "RETRY", "RELEASED"]), failed=FAILED)
    def work(self, who: int, verdict: str, failed: list[tuple[str, str]]) -> None:
        with self.acting(who) as session:
            for batch in call(session, "claim_batch", *LINES):
                (attempt,) = call(session, "begin_attempt", batch["id"], batch["requeues"], f"w{who}")
                ends = ([batch["id"]], attempt["attempt_id"])
                ids = [str(number) for number, _ in enumerate(failed)]
                outcomes, reasons = [one[0] for one in failed], [one[1] for one in failed]
                failures = [ids, [f"key {number}" for number in ids], outcomes, reasons, ["an error"] * len(ids)]
                call(session, "finish_batch", ends[0][0], ends[1], verdict, "1 s", None, 2, 1, 70, ["1"], *failures)

    @rule(who=st.integers(0, 2), verdict=st.sampled_from(["ERROR", "RETRY", "RELEASED"]))
    def fail(self, who: int, verdict: str) -> None:
        with self.acting(who) as session:
            for batch in call(session, "claim_batch", *LINES):
                (attempt,) = call(session, "begin_attempt", batch["id"], batch["requeues"], f"w{who}")
                call(session, "fail_batch", batch["id"], attempt["attempt_id"], verdict, "0 s", "e")

    @rule(who=st.integers(0, 2), since=st.integers(0, 400))
    def compact(self, who: int, since: int) -> None:
        with self.acting(who) as session:
            call(session, "compact_tally", since)

    @rule(who=st.integers(0, 2))
    def commit(self, who: int) -> None:
        self.sessions[who].commit()

    @rule(who=st.integers(0, 2))
    def rollback(self, who: int) -> None:
        self.sessions[who].rollback()

    @rule(who=st.integers(0, 2))
    def look_from_within(self, who: int) -> None:
        with self.acting(who) as session, session.cursor(row_factory=tuple_row) as cursor:
            assert sorted(cursor.execute(TALLY).fetchall(), key=str) == sorted(cursor.execute(SCAN).fetchall(), key=str)

    @invariant()
    @precondition(lambda self: hasattr(self, "eye"))
    def says_what_a_scan_would_say(self) -> None:
        with self.eye.transaction():
            self.eye.execute("set transaction isolation level repeatable read")
            assert read(self.eye, TALLY) == read(self.eye, SCAN)
            assert read(self.eye, REASONS) == read(self.eye, FAILURES)

    def teardown(self) -> None:
        for session in getattr(self, "sessions", []):
            session.rollback()
        self.until.close()


def test_the_tally_says_what_a_scan_would_say(any_database: str) -> None:
    with psycopg.connect(any_database, autocommit=True) as connection:
        connection.execute(MIGRATIONS)
    machine = type("Machine", (Queue,), {"dsn": any_database})
    run_state_machine_as_test(machine, settings=settings(max_examples=12, stateful_step_count=40))


def compare(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        assert read(connection, TALLY) == read(connection, SCAN)
        assert read(connection, REASONS) == read(connection, FAILURES)


def test_a_batch_that_moves_as_it_ends_is_counted_where_it_is(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(MIGRATIONS)
        connection.execute(INSERT, {"many": 3})
        done = sql.SQL("update rowferry.batch_queue set status = 'DONE', kept = entry_count, {} where id = %s")
        moves = ("migration_id = 3 - migration_id", "queue_name = 'tag'", 'payload = \'{"entries": "t9"}\'')
        for number, move in enumerate(map(sql.SQL, moves), start=1):
            assert connection.execute(done.format(move), (number,)).rowcount == 1
    compare(database)


@pytest.mark.superuser("turns triggers off: session_replication_role")
def test_a_change_behind_the_triggers_back_is_seen_and_mended(database: str) -> None:
    with psycopg.connect(as_superuser(database), autocommit=True) as connection:
        connection.execute(MIGRATIONS)
        connection.execute(INSERT, {"many": 50})
        connection.execute("update rowferry.batch_queue set started_at = now() - id * interval '1 minute'")
        compare(database)
        with connection.transaction():
            connection.execute("set local session_replication_role = replica")
            connection.execute("delete from rowferry.batch_queue where id % 3 = 0")
        with pytest.raises(AssertionError):
            compare(database)
        assert connection.execute("select rowferry.recount_batches()").fetchall() == [(34,)]
        compare(database)
        began = "select payload ->> 'entries', min(started_at) from rowferry.batch_queue group by 1 order by 1"
        told = "select label, min(started_at) from rowferry.batch_tally group by 1 order by 1"
        assert connection.execute(told).fetchall() == connection.execute(began).fetchall()


def test_the_tally_stays_small(any_database: str) -> None:
    """However many statements change the queue, and though one transaction has been open since before the first."""
    with psycopg.connect(any_database, autocommit=True) as connection, psycopg.connect(any_database) as idle:
        connection.execute(MIGRATIONS)
        connection.execute(INSERT, {"many": 5})
        idle.execute("update rowferry.batch_queue set kept = 1 where id = 1")
        change = "update rowferry.batch_queue set bytes = bytes + 1 where id = 2"
        for _ in range(900):
            connection.execute(change)
        ((rows,),) = connection.execute(COUNTS).fetchall()
        assert rows < 1000
        idle.commit()
    compare(any_database)


@pytest.mark.versions
def test_no_worker_waits_for_a_long_enqueue(any_database: str) -> None:
    with psycopg.connect(any_database, autocommit=True) as worker, psycopg.connect(any_database) as enqueuer:
        worker.execute(MIGRATIONS)
        worker.execute(INSERT, {"many": 100})
        enqueuer.execute(INSERT, {"many": 1200})
        worker.execute("set lock_timeout = '100ms'")
        for number in range(600):
            worker.execute("update rowferry.batch_queue set status = 'ERROR' where id = %s", (1 + number % 100,))
        enqueuer.commit()
    compare(any_database)


@pytest.mark.versions
def test_a_queue_that_is_older_than_its_tally_is_counted_once(any_database: str) -> None:
    with connect("test") as connection:
        connection.execute(MIGRATIONS)
        connection.execute(INSERT, {"many": 50})
        connection.execute("delete from rowferry.batch_tally")  # As the migration of the schema finds it.
        connection.commit()
        initialise(connection)
        compare(any_database)
        initialise(connection)
        compare(any_database)


@pytest.mark.versions
def test_progress_by_table_never_reads_the_queue(any_database: str) -> None:
    with psycopg.connect(any_database, autocommit=True) as connection:
        connection.execute(MIGRATIONS)
        connection.execute(INSERT, {"many": 50})
        with explained(connection) as plans:
            assert len(read(connection, TALLY)) > 3
            (plan,) = plans.take()
            assert "batch_queue" not in plan.scanned(), "but for the batches that workers have claimed"
