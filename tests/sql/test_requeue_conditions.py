"""Which batches a requeue puts back, what it records of that, and that a batch set back to INIT counts as new."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from rowferry.batch import Judgement, Verdict
from rowferry.db.connection import connect
from rowferry_worker.batch.claim import claim_batch
from support.entries.entry_table import EntryTable
from support.queue.held_batches import HOUR, crash, hold
from support.queue.lines import Lines
from support.queue.rows import add, change

MIGRATIONS = ("m", "other")
BY_HAND = "set to ERROR by hand; `rowferry requeue` puts it back"


def requeue(lines: Lines, **conditions: Any) -> set[int]:
    """Requeue by these conditions, and return the ids of the batches that were put back."""
    named = ", ".join(f"p_{name} => %({name})s" for name in conditions)
    query = f"select rowferry.requeue({named}) as count"
    before = waiting(lines)
    (row,) = lines.session.execute(query.encode(), conditions).fetchall()
    found = waiting(lines) - before
    assert row["count"] == len(found)
    return found


def waiting(lines: Lines) -> set[int]:
    return {row["id"] for row in lines.session.execute("select id from rowferry.batch_queue where status = 'INIT'")}


@pytest.fixture
def four(lines: Lines) -> Lines:
    """Batches in ERROR: 1 and 2 of `m`, 3 of another queue of it, 4 of another migration; 5 is DONE, 6 waits."""
    for queue, migration in (("copy", "m"), ("copy", "m"), ("tag", "m"), ("copy", "other")):
        add(lines, queue, 10, "ERROR", migration=migration)
    add(lines, "copy", 10, "DONE")
    add(lines, "copy", 10)
    change(lines, "batch_queue", "error = 'disk full' where id in (1, 4)")
    return lines


CONDITIONS: list[tuple[dict[str, Any], set[int]]] = [
    ({}, {1, 2, 3, 4}),
    ({"batch_id": 2}, {2}),
    ({"batch_id": 5}, set()),
    ({"migration": "m"}, {1, 2, 3}),
    ({"migration": "nobody"}, set()),
    ({"queue_name": "copy"}, {1, 2, 4}),
    ({"error_like": "disk%"}, {1, 4}),
    ({"error_like": "disk%", "migration": "other"}, {4}),
    ({"migration": "m", "queue_name": "copy"}, {1, 2}),
    ({"batch_id": 3, "queue_name": "copy"}, set()),
    ({"batch_id": 4, "migration": "m"}, set()),
    ({"batch_id": 2, "error_like": "disk%"}, set()),
    ({"batch_id": 1, "error_like": "%"}, {1}),
    ({"error_like": "%sk fu%"}, {1, 4}),
    ({"error_like": "nothing like it"}, set()),
]


def test_a_requeue_is_of_what_meets_all_its_conditions(four: Lines, subtests: pytest.Subtests) -> None:
    for conditions, requeued in CONDITIONS:
        with subtests.test(str(conditions)), four.session.transaction(force_rollback=True):
            assert requeue(four, **conditions) == requeued


def test_an_error_or_a_reason_of_an_entry_is_that_of_its_own_batch(four: Lines) -> None:
    insert = "insert into rowferry.entry_failure values (%s, '1', 'image/1', 'failed', %s, %s, 1)"
    four.session.execute(insert, (2, "SlowDown", "a timeout it was"))
    assert requeue(four, error_like="a timeout%") == {2}
    change(four, "batch_queue", "status = 'ERROR' where id = 2")
    four.session.execute(insert, (3, "SlowDown", "another"))
    assert requeue(four, error_like="%Slow%") == {3}


def test_what_was_parked_by_hand_finished_or_not_is_named_and_found_by_that(four: Lines) -> None:
    change(four, "batch_queue", "status = 'ERROR' where id = 5")
    reasons = four.session.execute("select reason, batches from rowferry.error_reasons where outcome = 'parked'")
    assert [(row["reason"], row["batches"]) for row in reasons] == [(BY_HAND, 1)]
    change(four, "batch_queue", "status = 'ERROR' where id = 6")
    assert requeue(four, error_like=BY_HAND) == {5, 6}


def events(lines: Lines) -> list[tuple[str, str]]:
    rows = lines.session.execute("select migration, text from rowferry.events order by at, migration, text").fetchall()
    return [(row["migration"], row["text"]) for row in rows]


def test_each_queue_of_each_migration_is_recorded_once_a_transaction(four: Lines) -> None:
    requeue(four)
    assert events(four) == [
        ("m", "queue copy: batches requeued"),
        ("m", "queue tag: batches requeued"),
        ("other", "queue copy: batches requeued"),
    ]


def test_each_transaction_of_a_session_is_recorded(four: Lines) -> None:
    for batch_id in (1, 2):
        requeue(four, batch_id=batch_id)
    assert events(four) == [("m", "queue copy: batches requeued")] * 2


def test_what_an_operator_chooses_of_when_a_batch_is_due_stays(four: Lines) -> None:
    change(four, "batch_queue", "status = 'INIT', run_after = '2099-01-01' where id = 1")
    change(four, "batch_queue", "run_after = '2098-01-01' where id = 2")
    change(four, "batch_queue", "status = 'INIT' where id = 2")
    rows = four.session.execute(
        "select id, run_after <= clock_timestamp() as is_due from rowferry.batch_queue where id in (1, 2) order by id"
    )
    assert [row["is_due"] for row in rows] == [False, True]


def test_only_the_failures_of_the_batch_are_forgotten(four: Lines) -> None:
    insert = "insert into rowferry.entry_failure values (%s, %s, 'image/1', %s, 'r', 'e', 1)"
    for batch_id in (1, 2):
        for outcome in ("missing", "conflict", "failed", "changed", "deleted"):
            four.session.execute(insert, (batch_id, outcome, outcome))
    change(four, "batch_queue", "missing = 1, conflict = 2, crashes = 3 where id = 1")
    requeue(four, batch_id=1)
    rows = four.session.execute("select batch_id, outcome from rowferry.entry_failure order by 1, 2").fetchall()
    assert [row["outcome"] for row in rows if row["batch_id"] == 1] == ["changed", "deleted"]
    assert len([row for row in rows if row["batch_id"] == 2]) == 5
    (row,) = four.session.execute("select * from rowferry.batch_queue where id = 1").fetchall()
    assert (row["missing"], row["conflict"], row["failed"], row["crashes"]) == (0, 0, 0, 0)


READ = ["migrated"]
UNSETTLED = [
    ("ERROR", {"unsettled": ["1"], "read_again": READ}, ["1"]),
    ("ERROR", {"unsettled": ["1"]}, ["1"]),
    ("DONE", {"unsettled": ["1"], "read_again": READ}, None),
    ("DONE", {"unsettled": None}, []),
    ("DONE", {}, ...),
]


@pytest.mark.parametrize(("status", "payload", "unsettled"), UNSETTLED)
def test_what_the_last_attempt_left_is_read_and_of_a_done_batch_all_or_none(
    lines: Lines, status: str, payload: dict[str, Any], unsettled: Any
) -> None:
    """One that tracks nothing says nothing of what is left."""
    add(lines, "copy", 10, status)
    lines.session.execute("update rowferry.batch_queue set payload = %s", (Jsonb(payload),))
    change(lines, "batch_queue", "status = 'INIT'")
    (row,) = lines.session.execute("select payload from rowferry.batch_queue").fetchall()
    assert row["payload"] == payload | ({} if unsettled is ... else {"unsettled": unsettled})


def put_in_error(table: EntryTable) -> dict[str, Any]:
    with hold(table) as held:
        held.finish(
            Judgement(Verdict.ERROR, error="4 failed"),
            migrated=3,
            changed=1,
            deleted=1,
            missing=2,
            conflict=1,
            failed=2,
        )
    return table.batch()


def test_an_update_by_hand_requeues_and_resets(ten: EntryTable) -> None:
    crash(ten, 2)
    put_in_error(ten)
    ten.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
    batch = ten.batch()
    assert (batch["attempts"], batch["requeues"], batch["error"]) == (0, 1, None)
    assert (batch["started_at"], batch["finished_at"], batch["worker_id"]) == (None, None, None)
    assert ten.counts() == {"migrated": 3, "changed": 1, "deleted": 1}
    assert [failure["outcome"] for failure in ten.failures()] == ["changed", "deleted"]
    with hold(ten) as held:
        assert (held.attempt.number, held.attempt.crashes) == (1, 0)


def test_a_requeued_batch_is_due_at_once(ten: EntryTable) -> None:
    put_in_error(ten)
    ten.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour'")
    ten.execute("update rowferry.batch_queue set status = 'INIT'")
    with connect("worker test") as connection:
        assert claim_batch(connection, ["migrate"]) is not None


def test_a_batch_that_waits_is_not_reset(ten: EntryTable) -> None:
    """An operator's UPDATE without a WHERE must not give every waiting batch its attempts back."""
    crash(ten, 1)
    with hold(ten) as held:
        held.finish(Judgement(Verdict.RETRY, HOUR), failed=10)
    before = ten.batch()
    ten.execute("update rowferry.batch_queue set status = 'INIT'")
    assert ten.batch() == before
