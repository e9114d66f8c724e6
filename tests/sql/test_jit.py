"""What a worker asks of PostgreSQL is never compiled: where JIT is on, as in Debian's packages, it was 60 ms a claim.

Its session turns JIT off, since the functions switch plan nodes off (`enable_seqscan`): that adds 10,000,000,000 to the
cost of a plan that cannot do without, which is far above `jit_above_cost`.
"""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from rowferry.batch import Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, connect
from rowferry_worker.batch.claim import claim_batch, is_work_left
from rowferry_worker.batch.verdict import write_failure, write_verdict
from support.entries.entry_table import EntryTable
from support.postgres.plans import Plan, explained
from support.queue.held_batches import begin, claim


@pytest.fixture
def worker(distribution_database: str) -> Iterator[Connection]:
    """A worker's connection to a small queue, on a server that compiles whatever PostgreSQL finds dear."""
    with closing(EntryTable(distribution_database)) as table:
        table.add_legacy(range(1000)).enqueue(1)
    with closing(connect("worker")) as connection:
        connection.execute("set local jit = on")  # or nothing would be available
        if not connection.execute("select pg_jit_available() as here").fetchall()[0]["here"]:
            pytest.skip("this PostgreSQL was built without JIT")
        connection.commit()
        yield connection
        connection.rollback()


def act(worker: Connection) -> None:
    """Do once whatever a worker does with batches."""
    entry = Entry("1", "image/1")
    for judgement, results in (
        (Judgement(Verdict.DONE), [EntryResult(entry, Outcome.MIGRATED, 1)]),
        (Judgement(Verdict.ERROR), [EntryResult(entry, Outcome.MISSING, reason="r", error="e")]),
    ):
        batch = claim(worker)
        write_verdict(worker, batch, begin(worker, batch), judgement, results)
    batch = claim(worker)
    write_failure(worker, batch, begin(worker, batch), Judgement(Verdict.ERROR, error="as a whole"))
    assert claim_batch(worker, ["verify"]) is None
    assert is_work_left(worker, ["migrate"])
    worker.execute("select rowferry.prune_batches('0 s', 1000)")


def compiled(plans: list[Plan]) -> set[str]:
    return {" ".join(plan.text.split())[:80] for plan in plans if plan.compiled}


def test_nothing_that_a_worker_asks_is_compiled(worker: Connection) -> None:
    with explained(worker) as plans:
        act(worker)
        found = plans.take()
        assert len(found) > 20
        assert compiled(found) == set()


def test_a_session_of_ours_compiles_nothing(distribution_database: str) -> None:
    with psycopg.connect(distribution_database) as stranger:
        assert stranger.execute("show jit").fetchall() == [("on",)]
    with closing(connect("test")) as connection:
        assert connection.execute("show jit").fetchall() == [{"jit": "off"}]
