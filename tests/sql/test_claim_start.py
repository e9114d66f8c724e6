"""A process claims on from where it last found a batch: what finished before costs nothing, nothing is forgotten."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from rowferry.batch import Batch
from rowferry.db.connection import Connection, connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch, end_poll, is_work_left
from rowferry_worker.ledger import Ledger
from rowferry_worker.waiting_lines import WaitingLines
from support.postgres.plans import Plan, explained
from support.processes.processes import wait_for
from support.queue.rows import ADD_BATCHES

pytestmark = pytest.mark.versions

MANY = 20_000
QUEUES = ["migrate"]
FEW_PAGES = 60
Other = psycopg.Connection[tuple[int]]
FILL = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, run_after)
select 1, 'migrate', '{}', 1, now() - interval '1 hour' from generate_series(1, %s)
"""
FINISH = """
update rowferry.batch_queue set status = 'DONE', migrated = 1, finished_at = now()
where id = any(array(select id from rowferry.batch_queue where status = 'INIT' order by run_after, id limit %s))
"""
DUE_IN = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, run_after)
values (1, 'migrate', '{}', 1, now() + %s::interval) returning id
"""
OLDER = ("-2 hours",)
ADD_MIGRATIONS = "insert into rowferry.migration (name, plan) select 'old-' || i, '{}' from generate_series(1, %s) as i"


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


class Process:
    """One session of a worker, with what it knows of the lines, and a clock that tests set."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.seconds = 0.0
        self.lines = WaitingLines(lambda: self.seconds)

    def poll(self) -> Batch | None:
        return claim_batch(self.connection, QUEUES, lines=self.lines)

    def claim(self) -> Batch:
        batch = self.poll()
        assert batch is not None
        return batch

    def finish(self) -> int:
        """Claim a batch, make it DONE, commit and return its id."""
        batch = self.claim()
        done = "update rowferry.batch_queue set status = 'DONE', migrated = 1 where id = %s"
        self.connection.execute(done, (batch.id,))
        self.connection.commit()
        return batch.id

    def plans(self, act: Callable[[], object]) -> list[Plan]:
        """Return the plans of the statements inside of functions, and roll back."""
        with explained(self.connection) as plans:
            act()
            return plans.take_inner()

    def cost(self) -> int:
        """Return how many pages the cheapest of three polls touched: one of them may have looked from the beginning."""
        return min(sum(plan.touched for plan in self.plans(self.poll)) for _ in range(3))


@pytest.fixture
def process(worker: Connection) -> Process:
    return Process(worker)


@pytest.mark.parametrize("left", [10, 0], ids=["beside others of its line", "of another migration"])
def test_batches_that_finished_under_a_strangers_snapshot_cost_a_claim_nothing(
    any_database: str, process: Process, other: Other, left: int
) -> None:
    other.execute(FILL, (MANY,))
    with under_a_snapshot(any_database):
        other.execute(FINISH, (MANY - left,))
        other.execute(ADD_BATCHES, (2, 1))
        walked = process.plans(process.claim)
        assert sum(plan.touched for plan in walked) > 500, "the proof that they are there to be read"
        assert process.cost() <= FEW_PAGES


@pytest.mark.parametrize("finished", [0, 1_000], ids=["that wait", "that are finished"])
def test_a_thousand_other_migrations_cost_a_claim_nothing(process: Process, other: Other, finished: int) -> None:
    other.execute(ADD_MIGRATIONS, (1_000,))
    other.execute(FILL, (20,))
    if not finished:
        other.execute(
            "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) "
            "select id, 'migrate', '{}', 1 from rowferry.migration where id > 1"
        )
    other.execute("vacuum analyze rowferry.migration")
    assert process.cost() <= FEW_PAGES
    assert is_work_left(process.connection, QUEUES)


def test_an_older_batch_is_passed_over_for_ten_seconds_at_most(process: Process, other: Other) -> None:
    other.execute(FILL, (5,))
    assert [process.finish() for _ in range(2)] == [1, 2]
    other.execute(DUE_IN, OLDER)
    assert process.finish() == 3
    process.seconds += 10
    assert process.finish() == 6


def test_an_older_batch_is_claimed_at_once_where_there_is_no_other(process: Process, other: Other) -> None:
    other.execute(FILL, (1,))
    assert process.finish() == 1
    other.execute(DUE_IN, OLDER)
    assert process.finish() == 2
    assert process.poll() is None
    assert not is_work_left(process.connection, QUEUES)


def test_a_batch_whose_worker_dies_is_claimed_by_those_who_have_gone_past_it(process: Process, other: Other) -> None:
    other.execute(FILL, (4,))
    with closing(connect("doomed")) as doomed:
        assert Process(doomed).claim().id == 1
        assert [process.finish() for _ in range(2)] == [2, 3]
        backend = doomed.info.backend_pid
    wait_for(lambda: not other.execute("select pid from pg_stat_activity where pid = %s", (backend,)).fetchone())
    assert {process.finish() for _ in range(2)} == {1, 4}
    assert process.poll() is None


def test_one_batch_is_passed_over_only_while_others_are_due(process: Process, other: Other) -> None:
    """A batch that is due later, as after a RETRY, does not move the start past those that come before it."""
    other.execute(FILL, (1,))
    other.execute(DUE_IN, ("10 minutes",))
    assert process.finish() == 1
    assert process.poll() is None
    other.execute(ADD_BATCHES, (1, 1))
    assert process.finish() == 3


@pytest.mark.parametrize("is_known", [False, True], ids=["first claim", "later claim"])
def test_a_claim_in_vain_looks_once_and_tries_what_others_hold_once(
    process: Process, other: Other, *, is_known: bool
) -> None:
    """It tries again only where something is due elsewhere than it knew."""
    other.execute(FILL, (3,))
    with closing(connect("holder")) as holder:
        holder.execute("select from rowferry.batch_queue for update")
        if is_known:
            assert process.poll() is None
            end_poll(process.connection)
        texts = [plan.text for plan in process.plans(process.poll)]
        assert sum("walked" in text for text in texts) == 1
        assert sum("skip locked" in text for text in texts) == 1
        assert other.execute(DUE_IN, OLDER).fetchone() == (process.claim().id,)


@pytest.mark.parametrize("migration", [2, 3], ids=["that was finished", "that is new"])
def test_another_migration_is_asked_within_ten_seconds(process: Process, other: Other, migration: int) -> None:
    other.execute(FILL, (3,))
    assert process.finish() == 1
    other.execute("insert into rowferry.migration (name, plan) values ('three', '{}')")
    other.execute("insert into rowferry.queue (migration_id, name, priority) values (%s, 'migrate', 9)", (migration,))
    other.execute(ADD_BATCHES, (migration, 1))
    assert process.finish() == 2
    process.seconds += 10
    assert process.finish() == 4


def test_a_queue_of_higher_priority_is_asked_at_once_though_it_was_empty(process: Process, other: Other) -> None:
    """As the next of a chain, which is handed its batches."""
    other.execute(FILL, (3,))
    other.execute("insert into rowferry.queue (migration_id, name, priority) values (1, 'verify', 1)")
    other.execute("insert into rowferry.queue (migration_id, name) values (1, 'tag')")
    queues = ["migrate", "tag", "verify"]
    assert claim_batch(process.connection, queues, lines=process.lines)
    for queue in ("tag", "verify"):
        other.execute(ADD_BATCHES.replace("migrate", queue).encode(), (1, 1))
    claimed = claim_batch(process.connection, queues, lines=process.lines)
    assert (claimed and claimed.queue_name) == "verify"


@pytest.fixture
def behind_the_dead(any_database: str, other: Other) -> Iterator[Other]:
    """A queue whose many finished batches no VACUUM can remove, and one that waits; yields the other session."""
    other.execute(FILL, (MANY,))
    with under_a_snapshot(any_database):
        other.execute(FINISH, (MANY - 1,))
        yield other


@pytest.mark.parametrize("waits", [True, False], ids=["beside a batch that another holds", "where none waits"])
def test_a_poll_in_vain_walks_the_dead_rows_once(process: Process, behind_the_dead: Other, *, waits: bool) -> None:
    """Within ten seconds."""
    with closing(connect("holder")) as holder:
        if waits:
            assert Process(holder).poll() is not None
        else:
            behind_the_dead.execute(FINISH, (1,))
        walked = process.plans(process.poll)
        assert sum(plan.touched for plan in walked) > 500, "the proof that they are there to be read"
        assert process.cost() <= FEW_PAGES
        process.seconds += 10
        assert sum(plan.touched for plan in process.plans(process.poll)) > 500, "what comes back is found"


def test_work_that_others_hold_is_found_without_walking_the_dead_rows(process: Process, behind_the_dead: Other) -> None:
    worker = process.connection
    with closing(connect("holder")) as holder, closing(Ledger("h:1:x")) as ledger:
        ledger.call("heartbeat", "h:1:x", "h", 1, "0", 1, 1, QUEUES)
        begin_attempt(ledger, Process(holder).claim(), "h:1:x")
        with explained(worker) as plans:
            assert is_work_left(worker, QUEUES)
            plans.take()  # the first one reads the catalog as well
            assert is_work_left(worker, QUEUES)
            assert sum(plan.touched for plan in plans.take()) <= 100
            holder.rollback()
            behind_the_dead.execute("update rowferry.worker set stopped_at = now()")
            assert is_work_left(worker, QUEUES)
            assert sum(plan.touched for plan in plans.take()) > 500, "the proof that they are there to be read"


def test_a_batch_that_is_given_back_does_not_make_its_process_walk_the_dead_rows_again(
    process: Process, behind_the_dead: Other
) -> None:
    assert process.claim().id == MANY
    process.connection.rollback()
    with closing(connect("other")) as another:
        assert Process(another).claim().id == MANY, "the proof that it was given back"
    assert process.cost() <= FEW_PAGES
