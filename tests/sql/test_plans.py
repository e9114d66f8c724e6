"""What a worker asks of PostgreSQL touches a few pages, however many batches wait and have finished.

Pages and rows are counted, never time: they say the same on every machine.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from rowferry.batch import Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, call, connect
from rowferry.db.entries import EntryQueries
from rowferry.plan import Entries
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.row_update import RowChange, update_rows
from rowferry_worker.batch.sources.table import read_entries
from rowferry_worker.batch.verdict import write_verdict
from support.postgres.ordinary import OWNER, administrator
from support.postgres.plans import Plan, explained
from support.postgres.servers import POSTGRES, DatabaseServers
from support.queue.held_batches import begin, claim, split
from support.queue.rows import ADD_BATCHES

CROWD = """
insert into rowferry.migration (name, plan) values ('crowded', '{}'), ('other', '{}');
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, migrated, attempts, run_after, started_at, finished_at,
    worker_id
)
select 1, 'migrate', '{}', 1, 'DONE', 1, 1, moment, moment, moment + i * interval '1 millisecond', 'h:1:x'
from generate_series(1, %(many)s) as i, (select now() - interval '2 days' as moment) as m;
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) select 1, 'migrate', '{}', 1
from generate_series(1, %(many)s);
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, finished_at, verdict)
select i, 0, 1, 'h:1:x', now(), 'DONE' from generate_series(1, %(many)s) as i;
create table public.entries (id bigint primary key, path text not null);
insert into public.entries
select i, case when i %% 2 = 0 then 'image/' else 'avatar/' end || i || '/me.png'
from generate_series(1, greatest(%(many)s, 100000)) as i
"""
INDEXES = """
select indexname as name, indexdef as definition from pg_indexes
where schemaname = 'rowferry' and tablename = 'batch_queue' and indexname not like '%_pkey'
"""


def fill(connection: psycopg.Connection[Any], many: int) -> None:
    """Fill the tables with so many of each, and at least 100,000 entries: of fewer, PostgreSQL had better read all.

    They are filled before their indexes, and without asking for each batch whether its migration is there.
    The connection is an administrator's; the tables of the queue stay their owner's.
    """
    connection.execute("set session_replication_role = replica")
    indexes = connection.execute(INDEXES).fetchall()
    for name, _ in indexes:
        connection.execute(sql.SQL("drop index rowferry.{}").format(sql.Identifier(name)))
    for statement in CROWD.split(";"):
        connection.execute(statement.encode(), {"many": many})
    for _, definition in indexes:
        connection.execute(definition.encode())
    connection.execute("vacuum analyze")


pytestmark = [pytest.mark.timeout(1200), pytest.mark.xdist_group("a million batches")]

QUEUES = ["migrate"]


CROWDS = [20_000, pytest.param(1_000_000, marks=pytest.mark.soak)]
"""So many batches are DONE, and as many INIT: the bounds of the tests are the same for a crowd and for a million."""


@pytest.fixture(scope="module", params=CROWDS, ids="{}-batches".format)
def crowd(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def large_queue(crowd: int, database_servers: DatabaseServers) -> Iterator[str]:
    """A database with so many batches DONE, batches INIT, attempts and entries.

    The tests of one size share it, and roll back what they do.
    """
    with database_servers.fresh_database(POSTGRES) as dsn:
        with administrator(dsn) as connection:
            fill(connection, crowd)
            connection.execute(sql.SQL("alter table public.entries owner to {}").format(sql.Identifier(OWNER)))
        yield dsn


@pytest.fixture
def worker(large_queue: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A worker's connection to it."""
    monkeypatch.setenv("DATABASE_URL", large_queue)
    with closing(connect("worker")) as connection:
        yield connection
        connection.rollback()


def check_claim(plans: list[Plan]) -> None:
    """Fail unless the batches were read by the index of those that wait, in its order, and next to none of them.

    They are read once where there is one line, else twice; once more where the session looks from the beginning, as it
    reads the tally then, and once more where it had not found the batch before; rowferry.queue is read for each line.
    """
    reading = [plan for plan in plans if "batch_queue" in plan.tables]
    assert len(reading) in {1, 2, 3, 4}
    assert [plan.scanned() - {"migration", "batch_tally"} for plan in plans] == [set() for _ in plans]
    assert {
        name for plan in reading for name in plan.indexes - {"migration_pkey", "queue_name_key", "claim_key_pkey"}
    } == {"batch_queue_due_idx"}
    *_, locking = [plan for plan in plans if "LockRows" in plan.kinds]
    walking = {"Limit", "LockRows", "Index Scan"}
    of_one_line = {"Nested Loop", "Subquery Scan", "Result", "Index Only Scan"}
    assert walking <= locking.kinds <= walking | of_one_line
    assert max(plan.most_rows() for plan in plans) <= 2
    assert sum(plan.touched for plan in plans) <= 45


def test_a_claim_reads_one_entry_of_the_index_of_waiting_batches(worker: Connection, crowd: int) -> None:
    with explained(worker) as plans:
        assert claim(worker).id == crowd + 1
        check_claim(plans.take_inner())


def test_batches_that_are_due_later_cost_a_claim_nothing(worker: Connection, crowd: int) -> None:
    worker.execute(
        "insert into rowferry.batch_queue (id, migration_id, queue_name, payload, entry_count, run_after) "
        "overriding system value "
        "select -i, 1, 'migrate', '{}', 1, now() + i * interval '1 second' from generate_series(1, 10000) as i"
    )
    assert worker.execute("select min(id) as first from rowferry.batch_queue").fetchall() == [{"first": -10_000}]
    with explained(worker) as plans:
        assert claim(worker).id == crowd + 1
        check_claim(plans.take_inner())


def test_a_paused_migration_costs_a_claim_nothing(worker: Connection) -> None:
    """Be it the only one that has batches, or one beside another that goes on."""
    worker.execute("update rowferry.migration set paused_at = now() where name = 'crowded'")
    with explained(worker) as plans:
        assert claim_batch(worker, QUEUES) is None
        assert sum(plan.touched for plan in plans.take_inner()) <= 30
        worker.execute(ADD_BATCHES, (2, 1))
        plans.take()
        assert claim(worker).migration_id == 2
        check_claim(plans.take_inner())


def test_batches_of_queues_that_a_worker_does_not_serve_cost_it_nothing(worker: Connection) -> None:
    with explained(worker) as plans:
        assert claim_batch(worker, ["tag", "verify"]) is None
        assert sum(plan.touched for plan in plans.take_inner()) <= 50


def test_batches_that_others_hold_cost_a_claim_one_row_each(worker: Connection, large_queue: str, crowd: int) -> None:
    with psycopg.connect(large_queue) as other:
        other.execute(
            "select from rowferry.batch_queue where status = 'INIT' order by run_after, id limit 32 for update"
        )
        with explained(worker) as plans:
            assert claim(worker).id == crowd + 33
            found = plans.take_inner()
            assert sum(plan.touched for plan in found) <= 150
            assert max(plan.most_rows() for plan in found) <= 33
        other.rollback()


def check_small(plans: list[Plan], pages: int) -> None:
    """Fail where a table was read from end to end, many rows were sorted, or more pages were touched."""
    assert [plan.scanned() for plan in plans if plan.scanned()] == []
    assert max(plan.most_rows() for plan in plans) <= 1000
    assert sum(plan.touched for plan in plans) <= pages


def test_an_attempt_at_any_batch_touches_a_few_pages(worker: Connection) -> None:
    batch = claim(worker)
    with explained(worker) as plans:
        assert begin(worker, batch).number == 1
        check_small(plans.take_inner(), 60)


@pytest.mark.parametrize("failures", [0, 100])
def test_a_verdict_touches_a_few_pages(worker: Connection, failures: int) -> None:
    entries = [Entry(str(number), f"image/{number}") for number in range(failures + 1)]
    results = [EntryResult(entry, Outcome.MISSING, reason="r", error="e") for entry in entries[1:]]
    results.append(EntryResult(entries[0], Outcome.MIGRATED, 1))
    with explained(worker) as plans:
        batch = claim(worker)
        attempt = begin(worker, batch)
        plans.take()
        verdict = Verdict.ERROR if failures else Verdict.DONE
        write_verdict(worker, batch, attempt, Judgement(verdict), results)
        check_small(plans.take_inner(), 90 + 9 * failures)


UPLOADS = """
insert into rowferry.upload (production, key, migration_id, batch_id, attempt_id, upload_id)
select 'new', 'avatar/' || i, 1, i, i, i::text from generate_series(1, 10000) as i;
analyze rowferry.upload
"""


def test_the_record_of_an_upload_is_found_among_many(worker: Connection) -> None:
    """Those of large objects that wait for their next attempt, all at once."""
    worker.execute(UPLOADS)
    with explained(worker) as plans:
        batch = claim(worker)
        attempt = begin(worker, batch)
        plans.take()
        (taken,) = call(worker, "take_upload", batch.id, attempt.id, "new", "avatar/7000", "old", "image/7000")
        assert (taken["is_held"], taken["upload_id"]) == (True, "7000")
        check_small(plans.take_inner(), 80)
        call(worker, "end_upload", attempt.id, "new", "avatar/7000")
        check_small(plans.take_inner(), 20)


def list_uploads(worker: Connection, batch: Batch, keys: list[str]) -> set[str]:
    return {row["key"] for row in call(worker, "list_uploads", batch.id, "new", keys)}


def test_the_uploads_of_large_objects_are_found_among_many(worker: Connection) -> None:
    """Every batch of the queue asks that at each attempt, however many wait beside it."""
    worker.execute(UPLOADS)
    worker.execute("update rowferry.upload set size_bytes = 10000, part_bytes = 1 where key = 'avatar/7000'")
    batch = claim(worker)
    attempt = begin(worker, batch)
    upload, keys = ("new", "avatar/7000", "7000"), [f"avatar/{number}" for number in range(6_951, 7_051)]
    with explained(worker) as plans:
        assert list_uploads(worker, batch, keys) == {*keys}
        check_small(plans.take_inner(), 800)
        (shared,) = call(worker, "add_parts", batch.id, *upload, [*range(1, 10_001)], 16)
        assert (shared["waiting"], shared["failed"]) == (625, 0)
        (finding,) = [plan for plan in plans.take_inner() if "batch_queue_upload_idx" in plan.indexes]
        check_small([finding], 10)
        worker.execute("update rowferry.upload set attempt_id = %s where key = 'avatar/7000'", (attempt.id,))
        plans.take()
        call(worker, "record_parts", attempt.id, *upload, Jsonb({"7": "e" * 32}))
        check_small(plans.take_inner(), 80)
        (found,) = call(worker, "list_uploads", batch.id, "new", ["avatar/7000"])
        assert found["recorded"] == [7]
        check_small(plans.take_inner(), 40)


def test_a_split_reads_the_uploads_of_its_batch_and_no_others(worker: Connection, crowd: int) -> None:
    worker.execute(UPLOADS)
    worker.execute(
        'update rowferry.batch_queue set payload = \'{"first": "1", "last": "9"}\' where id = %s', (crowd + 1,)
    )
    worker.execute("update rowferry.upload set batch_id = %s where key = 'avatar/7000'", (crowd + 1,))
    with explained(worker) as plans:
        batch = claim(worker)
        assert batch.id == crowd + 1
        split(worker, batch.id, "5", "9", count=5, keep="4")
        found = [plan for plan in plans.take_inner() if "upload" in plan.tables]
        assert {index for plan in found for index in plan.indexes} >= {"upload_batch_idx"}
        assert [plan.scanned() & {"upload"} for plan in found] == [set()]


def test_a_step_of_prune_reads_the_oldest_and_no_more(worker: Connection) -> None:
    with explained(worker) as plans:
        worker.execute("select rowferry.prune_batches('1 day', 1000)")
        steps = [plan for plan in plans.take() if "with old as" in plan.text]
        assert len(steps) == 1
        check_small(steps, 1000 * 15)
        assert {"batch_queue_finished_idx", "batch_queue_pkey", "batch_attempt_batch_idx"} == steps[0].indexes
        assert "Sort" not in steps[0].kinds


def test_the_rows_of_a_batch_are_read_and_updated_by_their_ids(worker: Connection, crowd: int) -> None:
    queries = EntryQueries.of(worker, Entries("public.entries", "id", "path", "image/", "avatar/"))
    with explained(worker) as plans:
        entries = read_entries(worker, queries, str(crowd // 2 + 1), str(crowd // 2 + 1000))
        assert len(entries) == 500
        check_small(plans.take(), 40)
        moves = [RowChange(entry, (entry.key.replace("image", "avatar"),)) for entry in entries]
        assert {result.outcome for result in update_rows(worker, queries, moves)} == {Outcome.MIGRATED}
        check_small([plan for plan in plans.take() if "update" in plan.text], 500 * 25)


@pytest.mark.versions
def test_a_session_that_knew_an_empty_queue_does_not_read_a_full_one_from_end_to_end(any_database: str) -> None:
    """PostgreSQL keeps the plans of functions for the session, and nothing has been analysed here."""
    with closing(connect("worker")) as worker, psycopg.connect(any_database, autocommit=True) as other:
        other.execute("alter table rowferry.batch_queue set (autovacuum_enabled = off)")
        other.execute("insert into rowferry.migration (name, plan) values ('m', '{}')")
        for _ in range(10):
            assert claim_batch(worker, QUEUES) is None
            worker.rollback()
        other.execute(ADD_BATCHES, (1, 50_000))
        with explained(worker) as plans:
            assert claim_batch(worker, QUEUES) is not None
            check_claim(plans.take_inner())


def test_the_last_attempts_are_read_from_the_end_of_the_ledger(worker: Connection) -> None:
    with explained(worker) as plans:
        query = (
            "select count(*) from rowferry.recent_attempts where migration = 'crowded' and started_at > '2000-01-01'"
        )
        assert worker.execute(query).fetchall() == [{"count": 10_000}]
        (plan,) = plans.take()
        assert plan.scanned() <= {"migration", "worker", "batch_queue"}
        assert max(node["Actual Rows"] for node in plan.nodes if node.get("Relation Name") == "batch_attempt") == 10_000


@pytest.mark.versions
def test_views_of_a_few_migrations_are_far_too_cheap_to_be_compiled(any_database: str) -> None:
    """For any role: psql and Grafana do not switch JIT off. `jit_above_cost` is 100,000.

    As at users', where autovacuum has analysed the queue, and not the tables of a few rows.
    """
    with psycopg.connect(any_database, autocommit=True) as connection:
        connection.execute("insert into rowferry.migration (name, plan) values ('m', '{}')")
        connection.execute("insert into rowferry.queue (migration_id, name, next) values (1, 'migrate', '{verify}')")
        connection.execute(ADD_BATCHES, (1, 20_000))
        connection.execute("analyze rowferry.batch_queue")
        for view in ("migration_state", "progress", "queue_status", "worker_hosts"):
            explain = sql.SQL("explain (format json) select * from rowferry.{}").format(sql.Identifier(view))
            ((plan,),) = connection.execute(explain).fetchall()
            assert plan[0]["Plan"]["Total Cost"] < 15_000, view
