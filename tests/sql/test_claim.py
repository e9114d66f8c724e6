"""A claimed batch belongs to one worker until its transaction ends, in whatever way it ends."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from threading import Barrier

import pytest

from rowferry.batch import Batch
from rowferry.db.connection import Connection, connect
from rowferry_worker.batch.claim import claim_batch, is_work_left
from support.entries.entry_table import EntryTable
from support.processes.processes import wait_for
from support.queue.held_batches import claim

pytestmark = pytest.mark.versions

QUEUES = ["migrate"]


@pytest.fixture
def connections(table: EntryTable) -> Iterator[list[Connection]]:
    """The connections of three workers."""
    with ExitStack() as until:
        yield [until.enter_context(closing(connect(f"worker {number}"))) for number in range(3)]


def enqueue_batches(table: EntryTable, count: int) -> list[int]:
    """Put batches of one entry each in the queue and return their ids."""
    table.add_legacy(range(count)).enqueue(1)
    return [batch["id"] for batch in table.batches()]


def claim_id(connection: Connection) -> int | None:
    batch = claim_batch(connection, QUEUES)
    return batch and batch.id


def test_a_claim_says_what_the_batch_is_and_which_plan(table: EntryTable, connections: list[Connection]) -> None:
    """A worker reads the plan again once it has changed."""
    table.plan["migration"]["max_attempts"] = 7
    (batch_id,) = enqueue_batches(table, 1)
    (row,) = table.execute("select id from rowferry.migration")
    payload = {"entries": "public.avatars.path", "first": "0", "last": "0", "on_conflict": "fail"}
    assert claim_batch(connections[0], QUEUES) == Batch(batch_id, row["id"], 1, "migrate", payload, 1, 7, 0)
    connections[0].rollback()
    table.plan["legacy"]["profile"] = "another"
    table.enqueue()
    assert claim(connections[0]).revision == 2


def test_many_claims_at_once_are_all_different(table: EntryTable) -> None:
    ids = enqueue_batches(table, 40)
    together = Barrier(8)

    def claim_and_finish(number: int) -> list[int]:
        claimed: list[int] = []
        with connect(f"worker {number}") as connection:
            together.wait(100)
            while (batch_id := claim_id(connection)) is not None:
                claimed.append(batch_id)
                done = "update rowferry.batch_queue set status = 'DONE', migrated = entry_count where id = %s"
                connection.execute(done, (batch_id,))
                connection.commit()
        return claimed

    with ThreadPoolExecutor(8) as pool:
        claimed = [batch_id for ids in pool.map(claim_and_finish, range(8)) for batch_id in ids]
    assert sorted(claimed) == ids


@pytest.mark.parametrize(
    "change",
    ["run_after = now() + interval '1 hour'", "status = 'DONE', migrated = 1", "status = 'ERROR', migrated = 1"],
    ids=["due later", "done", "in error"],
)
def test_only_a_batch_that_waits_and_is_due_is_claimed(
    change: str, table: EntryTable, connections: list[Connection]
) -> None:
    _, second = enqueue_batches(table, 2)
    table.execute(f"update rowferry.batch_queue set {change} where id <> %s", (second,))
    assert [claim_id(connection) for connection in connections[:2]] == [second, None]


@pytest.mark.parametrize("how", ["a rollback", "a lost connection"])
def test_the_end_of_its_transaction_gives_the_batch_back(
    how: str, table: EntryTable, connections: list[Connection]
) -> None:
    (batch_id,) = enqueue_batches(table, 1)
    assert claim_id(connections[0]) == batch_id
    if how == "a rollback":
        connections[0].rollback()
    else:
        table.execute("select pg_terminate_backend(%s)", (connections[0].info.backend_pid,))
    wait_for(lambda: claim_id(connections[1]) == batch_id)


def test_work_is_left_while_others_hold_it_or_it_is_not_due_until_all_ends(
    table: EntryTable, connections: list[Connection]
) -> None:
    """SKIP LOCKED hides what others hold: an empty claim is not the end of the work."""
    first, _ = enqueue_batches(table, 2)
    assert [claim_id(connection) is None for connection in connections] == [False, False, True]
    assert is_work_left(connections[1], QUEUES)
    for connection in connections:
        connection.rollback()
    table.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour'")
    assert is_work_left(connections[1], QUEUES)
    assert not is_work_left(connections[1], ["verify"])
    table.execute("update rowferry.batch_queue set status = 'ERROR'")
    table.execute("update rowferry.batch_queue set status = 'DONE', migrated = 1 where id = %s", (first,))
    assert not is_work_left(connections[0], QUEUES)


@pytest.mark.parametrize("is_passed_over", [False, True], ids=["one is named", "one is passed over"])
def test_a_claim_may_be_of_some_migrations_only(
    is_passed_over: bool, table: EntryTable, connections: list[Connection]
) -> None:
    enqueue_batches(table, 1)
    table.plan["migration"]["name"] = "banners"
    table.enqueue(1)
    avatars, banners = [row["id"] for row in table.execute("select id from rowferry.migration order by id")]
    if is_passed_over:
        batch = claim_batch(connections[0], QUEUES, passed_over=[avatars])
        other = claim_batch(connections[1], QUEUES, passed_over=[avatars, banners])
    else:
        batch = claim_batch(connections[0], QUEUES, ["banners"])
        other = claim_batch(connections[1], QUEUES, ["banners", "portraits"])
    assert ((batch and batch.migration_id), other) == (banners, None)
