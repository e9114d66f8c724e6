"""A session claims on from where it last found a batch: what finished before costs nothing, nothing is forgotten."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta

import psycopg
import pytest

from rowferry.batch import Batch
from rowferry.db.connection import Connection, connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch, end_poll, give_back, is_work_left
from rowferry_worker.ledger import Ledger
from support.postgres.plans import explained
from support.processes.processes import wait_for

pytestmark = pytest.mark.versions

MANY = 20_000
QUEUES = ["migrate"]
Other = psycopg.Connection[tuple[int]]
FILL = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, run_after)
select 1, 'migrate', '{}', 1, now() - interval '1 hour' from generate_series(1, %s)
"""
FINISH = """
update rowferry.batch_queue set status = 'DONE', migrated = 1, finished_at = now()
where id = any(array(select id from rowferry.batch_queue where status = 'INIT' order by run_after, id limit %s))
"""
OLDER = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, run_after)
values (1, 'migrate', '{}', 1, now() - interval '2 hours') returning id
"""
DUE_NOW = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) values (%s, 'migrate', '{}', 1)
"""
ADD_MIGRATIONS = "insert into rowferry.migration (name, plan) select 'old-' || i, '{}' from generate_series(1, %s) as i"
WAITED = """
select set_config('rowferry.claim_starts', jsonb_set(
    current_setting('rowferry.claim_starts')::jsonb, '{looked_at}', to_jsonb(now() - interval '11 seconds')
)::text, false)
"""


@pytest.fixture
def other(any_database: str) -> Iterator[Other]:
    """Another session at the queue, in autocommit; one migration is there, and no batch."""
    with psycopg.connect(any_database, autocommit=True) as other:
        other.execute("insert into rowferry.migration (name, plan) values ('one', '{}'), ('two', '{}')")
        yield other


@contextmanager
def under_a_snapshot(dsn: str) -> Iterator[None]:
    """Keep a stranger's snapshot open until the block ends: no VACUUM can remove what is finished meanwhile."""
    with psycopg.connect(dsn) as stranger:
        stranger.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        stranger.execute("select 1 from pg_class limit 1")
        yield


def claim(worker: Connection) -> Batch:
    batch = claim_batch(worker, QUEUES)
    assert batch is not None
    return batch


def finish(worker: Connection) -> int:
    """Claim a batch, make it DONE, commit and return its id."""
    batch = claim(worker)
    worker.execute("update rowferry.batch_queue set status = 'DONE', migrated = 1 where id = %s", (batch.id,))
    worker.commit()
    return batch.id


def touched_by_poll(worker: Connection) -> int:
    """Return how many pages a claim touches, in vain or not; it ends as an idle worker's does."""
    with explained(worker) as plans:
        claim_batch(worker, QUEUES)
        touched = sum(plan.touched for plan in plans.take_inner())
        end_poll(worker)
    return touched


def claim_cost(worker: Connection) -> int:
    """Return how many pages the cheapest of three claims touched: one of them may have looked from the beginning."""
    costs: list[int] = []
    for _ in range(3):
        with explained(worker) as plans:
            claim(worker)
            costs.append(sum(plan.touched for plan in plans.take_inner()))
            worker.commit()
    return min(costs)


def test_batches_that_finished_under_a_strangers_snapshot_cost_a_claim_nothing(
    any_database: str, worker: Connection, other: Other
) -> None:
    other.execute(FILL, (MANY,))
    with under_a_snapshot(any_database):
        other.execute(FINISH, (MANY - 10,))
        assert claim_cost(worker) <= 60
        worker.execute("reset rowferry.claim_starts")
        with explained(worker) as plans:
            claim(worker)
            assert sum(plan.touched for plan in plans.take_inner()) > 500, "the proof that they are there to be read"


def test_where_a_batch_was_claimed_is_remembered_beyond_the_transaction(worker: Connection, other: Other) -> None:
    other.execute(FILL, (2,))
    finish(worker)
    last = finish(worker)
    starts = (
        "select f.value ->> 1 as id from jsonb_each(current_setting('rowferry.claim_starts')::jsonb -> 'starts') as f"
    )
    assert [row["id"] for row in worker.execute(starts)] == [str(last)]


def test_another_migration_that_finished_under_it_costs_a_claim_nothing(
    any_database: str, worker: Connection, other: Other
) -> None:
    other.execute(FILL, (MANY,))
    with under_a_snapshot(any_database):
        other.execute(FINISH, (MANY,))
        other.execute(DUE_NOW, (2,))
        assert claim_cost(worker) <= 60


def test_an_older_batch_is_passed_over_for_ten_seconds_at_most(worker: Connection, other: Other) -> None:
    other.execute(FILL, (5,))
    assert [finish(worker) for _ in range(2)] == [1, 2]
    other.execute(OLDER)
    assert finish(worker) in {3, 6}, "at once where the ten seconds have just passed"
    worker.execute(WAITED)
    assert finish(worker) in {3, 6}
    assert {row["id"] for row in worker.execute("select id from rowferry.batch_queue where status = 'DONE'")} == {
        1, 2, 3, 6
    }  # fmt: skip


def test_an_older_batch_is_claimed_at_once_where_there_is_no_other(worker: Connection, other: Other) -> None:
    other.execute(FILL, (1,))
    assert finish(worker) == 1
    other.execute(OLDER)
    assert finish(worker) == 2
    assert claim_batch(worker, QUEUES) is None
    assert not is_work_left(worker, QUEUES)


def test_a_batch_that_was_given_back_is_the_next_again(worker: Connection, other: Other) -> None:
    other.execute(FILL, (3,))
    assert finish(worker) == 1
    assert claim(worker).id == 2
    worker.rollback()
    assert finish(worker) == 2


def test_a_batch_whose_worker_dies_is_claimed_by_those_who_have_gone_past_it(worker: Connection, other: Other) -> None:
    other.execute(FILL, (4,))
    with closing(connect("doomed")) as doomed:
        assert claim(doomed).id == 1
        assert [finish(worker) for _ in range(2)] == [2, 3]
        backend = doomed.info.backend_pid
    wait_for(lambda: not other.execute("select pid from pg_stat_activity where pid = %s", (backend,)).fetchone())
    assert {finish(worker) for _ in range(2)} == {1, 4}
    assert claim_batch(worker, QUEUES) is None


def test_a_session_outlives_a_clock_that_was_set_back(worker: Connection, other: Other) -> None:
    other.execute(FILL, (2,))
    assert finish(worker) == 1
    worker.execute(WAITED.replace("- interval '11 seconds'", "+ interval '1 day'").encode())
    worker.commit()
    other.execute(OLDER)
    assert finish(worker) == 3


def test_one_batch_is_passed_over_only_while_others_are_due(worker: Connection, other: Other) -> None:
    """A batch that is due later, as after a RETRY, does not move the start past those that come before it."""
    other.execute(FILL, (1,))
    later = timedelta(minutes=10)
    other.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, run_after) "
        "values (1, 'migrate', '{}', 1, now() + %s)",
        (later,),
    )
    assert finish(worker) == 1
    assert claim_batch(worker, QUEUES) is None
    other.execute(DUE_NOW, (1,))
    assert finish(worker) == 3


def test_a_claim_in_vain_tries_what_others_hold_once(worker: Connection, other: Other) -> None:
    """It looks from the beginning as well, but tries again only where something is due before its start."""
    other.execute(FILL, (3,))
    assert finish(worker) == 1
    with closing(connect("holder")) as holder:
        holder.execute("select from rowferry.batch_queue for update")
        with explained(worker) as plans:
            assert claim_batch(worker, QUEUES) is None
            tried = [plan for plan in plans.take_inner() if "skip locked" in plan.text]
            assert len(tried) == 1
            worker.rollback()
            assert other.execute(OLDER).fetchone() == (claim(worker).id,)


FINISHED = 1_000


def test_migrations_that_are_finished_cost_a_claim_nothing(worker: Connection, other: Other) -> None:
    """Neither while a session goes on nor where it looks from the beginning."""
    other.execute(ADD_MIGRATIONS, (FINISHED,))
    other.execute("vacuum analyze rowferry.migration")
    other.execute(FILL, (20,))
    assert touched_by_poll(worker) <= 80
    assert claim_cost(worker) <= 60
    assert is_work_left(worker, QUEUES)


def test_the_first_claim_in_vain_looks_from_the_beginning_once(worker: Connection, other: Other) -> None:
    """It has just done so: what it would find is what it has."""
    other.execute(FILL, (1,))
    with closing(connect("holder")) as holder:
        holder.execute("select from rowferry.batch_queue for update")
        with explained(worker) as plans:
            assert claim_batch(worker, QUEUES) is None
            texts = [plan.text for plan in plans.take_inner()]
    looks = [text for text in texts if "walked" in text]
    assert len(looks) == 1, texts


def test_a_migration_that_comes_later_is_asked_at_once(worker: Connection, other: Other) -> None:
    other.execute(FILL, (2,))
    assert finish(worker) == 1
    other.execute("insert into rowferry.migration (name, plan) values ('three', '{}')")
    other.execute("insert into rowferry.queue (migration_id, name, priority) values (3, 'migrate', 9)")
    other.execute(DUE_NOW, (3,))
    assert finish(worker) == 3


def test_a_finished_migration_that_is_enqueued_again_is_asked_where_nothing_else_is_due(
    worker: Connection, other: Other
) -> None:
    other.execute(FILL, (1,))
    assert finish(worker) == 1
    assert claim_batch(worker, QUEUES) is None
    end_poll(worker)
    other.execute(OLDER)
    assert finish(worker) == 2, "though it was due before the session looked"


@pytest.fixture
def behind_the_dead(any_database: str, other: Other) -> Iterator[Other]:
    """A queue whose many finished batches no VACUUM can remove, and one that waits; yields the other session."""
    other.execute(FILL, (MANY,))
    with under_a_snapshot(any_database):
        other.execute(FINISH, (MANY - 1,))
        yield other


def test_a_poll_in_vain_walks_the_dead_rows_once(worker: Connection, behind_the_dead: Other) -> None:
    behind_the_dead.execute(FINISH, (1,))
    assert claim_batch(worker, QUEUES) is None
    end_poll(worker)
    assert min(touched_by_poll(worker) for _ in range(2)) <= 60


def test_a_poll_beside_batches_that_others_hold_walks_the_dead_rows_once(
    worker: Connection, behind_the_dead: Other
) -> None:
    with closing(connect("holder")) as holder:
        assert claim_batch(holder, QUEUES) is not None
        assert claim_batch(worker, QUEUES) is None
        end_poll(worker)
        assert min(touched_by_poll(worker) for _ in range(2)) <= 60


def test_work_that_others_hold_is_found_without_walking_the_dead_rows(
    worker: Connection, behind_the_dead: Other
) -> None:
    with closing(connect("holder")) as holder, closing(Ledger("h:1:x")) as ledger:
        ledger.call("heartbeat", "h:1:x", "h", 1, "0", 1, 1, QUEUES)
        begin_attempt(ledger, claim(holder), "h:1:x")
        with explained(worker) as plans:
            assert is_work_left(worker, QUEUES)
            plans.take()  # the first one reads the catalog as well
            assert is_work_left(worker, QUEUES)
            assert sum(plan.touched for plan in plans.take()) <= 100
            holder.rollback()
            behind_the_dead.execute("update rowferry.worker set stopped_at = now()")
            assert is_work_left(worker, QUEUES)
            assert sum(plan.touched for plan in plans.take()) > 500, "the proof that they are there to be read"


def test_a_batch_that_is_given_back_does_not_make_its_session_walk_the_dead_rows_again(
    worker: Connection, behind_the_dead: Other
) -> None:
    assert claim(worker).id == MANY
    give_back(worker)
    with closing(connect("other")) as another:
        assert claim(another).id == MANY, "the proof that it was given back"
    assert min(touched_by_poll(worker) for _ in range(2)) <= 60


def test_a_batch_of_a_failed_transaction_is_given_back_too(worker: Connection, other: Other) -> None:
    other.execute(FILL, (1,))
    assert claim(worker).id == 1
    with pytest.raises(psycopg.errors.DivisionByZero):
        worker.execute("select 1 / 0")
    give_back(worker)
    assert finish(worker) == 1
