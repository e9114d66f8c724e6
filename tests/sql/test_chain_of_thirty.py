"""Thirty queues, one after the other, and sixteen sessions: each item is in each queue once, and nothing deadlocks."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from psycopg.types.json import Jsonb

from rowferry.batch import Attempt, Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, call, connect
from rowferry_worker.batch.claim import claim_batch, is_work_left
from rowferry_worker.batch.verdict import write_verdict
from support.processes.clock import LoadClock
from support.queue.lines import Lines

QUEUES = [f"q{number}" for number in range(30)]
BATCHES, ITEMS = 20, 10
WITHIN_SECONDS = 100
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"


@pytest.fixture
def lines(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    monkeypatch.setenv("DATABASE_URL", database)
    with closing(Lines(database)) as lines:
        following = zip(QUEUES, [*QUEUES[1:], None], strict=True)
        said = {name: {"max_claimed": 3, "next": [after] if after else []} for name, after in following}
        migration_id = lines.register(
            "one", {name: each | {"payload": {"unsettled": None}} for name, each in said.items()}
        )
        for number in range(BATCHES):
            items = [{"id": f"{number}-{item}"} for item in range(ITEMS)]
            payload = Jsonb({"entries": "things", "items": items, "unsettled": None})
            lines.session.execute(
                "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) "
                "values (%s, 'q0', %s, %s)",
                (migration_id, payload, ITEMS),
            )
        yield lines


def work(seed: int) -> None:
    """Work until nothing is left; give some batches back, and let some items fail at first."""
    choose, clock = random.Random(seed), LoadClock()
    with closing(connect(f"worker {seed}")) as connection:
        while clock.look() < WITHIN_SECONDS:
            batch = claim_batch(connection, QUEUES)
            if batch is not None and choose.random() < 0.9:
                finish(connection, batch, choose)
                connection.commit()
                continue
            connection.rollback()
            if batch is None and not is_work_left(connection, QUEUES):
                return
            connection.rollback()
    raise TimeoutError


def finish(connection: Connection, batch: Batch, choose: random.Random) -> None:
    (begun,) = call(connection, "begin_attempts", [batch.id], [batch.requeues], "w")
    ids = batch.payload["unsettled"] or [item["id"] for item in batch.payload["items"]]
    fails = 0.03 if batch.payload["unsettled"] is None else 0
    outcomes = [Outcome.FAILED if choose.random() < fails else Outcome.MIGRATED for _ in ids]
    results = [EntryResult(Entry(each, each), outcome) for each, outcome in zip(ids, outcomes, strict=True)]
    verdict = Verdict.RETRY if Outcome.FAILED in outcomes else Verdict.DONE
    write_verdict(connection, batch, Attempt(begun["attempt_id"], begun["number"], 0), Judgement(verdict), results)


@pytest.mark.soak
def test_each_item_is_once_in_each_of_thirty_queues(lines: Lines) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    found = lines.session.execute(
        "select queue_name, count(*) as items, count(distinct i.value ->> 'id') as ids, "
        "count(*) filter (where q.status <> 'DONE') as left from rowferry.batch_queue as q "
        "cross join jsonb_array_elements(q.payload -> 'items') as i group by queue_name"
    ).fetchall()
    once = (BATCHES * ITEMS, BATCHES * ITEMS, 0)
    assert {row["queue_name"]: (row["items"], row["ids"], row["left"]) for row in found} == dict.fromkeys(QUEUES, once)
    sums = lines.session.execute("select queue_name, entries, migrated, waiting from rowferry.progress").fetchall()
    assert [row for row in sums if (row["entries"], row["migrated"], row["waiting"]) != (200, 200, 0)] == []
    batches = lines.session.execute("select count(*) as count from rowferry.batch_queue").fetchall()[0]["count"]
    assert batches > BATCHES * len(QUEUES), "the proof that some were handed on in parts"
    assert lines.session.execute(DEADLOCKS).fetchall() == [{"deadlocks": 0}]
