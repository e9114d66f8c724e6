"""What a queue has settled is handed on to the queues after it, in the transaction that settles it, and only once."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import errors
from psycopg.types.json import Jsonb

from rowferry.batch import Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, connect
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.verdict import write_verdict
from support.queue.held_batches import begin, split
from support.queue.lines import Lines

INSERT = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts)
select id, 'load', %s, %s, 7 from rowferry.migration where name = 'one'
"""
RANGE = {"entries": "public.t.key", "first": "0", "last": "9", "on_conflict": "fail", "pass": 3}
RANGE_ALONE = {"entries": "public.t.key", "first": "0", "last": "9"}
TALLY = """
select
    queue_name, sum(batches) as batches, sum(entries) as entries, sum(migrated + kept) as settled, sum(failed) as failed
from rowferry.table_progress group by queue_name
"""
SCAN = """
select
    queue_name, count(*) as batches, sum(entry_count) as entries, sum(migrated + kept) as settled,
    sum(case when status = 'INIT' then 0 else failed end) as failed
from rowferry.batch_queue group by queue_name
"""


@pytest.fixture
def lines(any_database: str) -> Iterator[Lines]:
    """A queue `load` before `tag` and `verify`, of which the plan says nothing more; every sum balanced in the end."""
    with closing(Lines(any_database)) as lines:
        lines.register("one", {"load": {"next": ["tag"]}, "tag": {}, "verify": {}})
        yield lines
        by_queue = {row["queue_name"]: row for row in lines.session.execute(SCAN)}
        assert {row["queue_name"]: row for row in lines.session.execute(TALLY)} == by_queue


class Worker:
    """A session that claims a batch, begins an attempt and says how it ended."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.batch: Batch | None = None

    def claim(self, queue: str = "load") -> Batch:
        self.batch = claim_batch(self.connection, [queue])
        assert self.batch is not None
        return self.batch

    def finish(self, verdict: Verdict, outcomes: Mapping[str, str]) -> None:
        """Claim the batch that is due, and end an attempt at it with these outcomes by id."""
        batch = self.batch or self.claim()
        judgement = Judgement(verdict, timedelta(0), "why")
        results = [
            EntryResult(Entry(entry_id, f"image/{entry_id}"), Outcome(outcome), reason="r", error="e")
            for entry_id, outcome in outcomes.items()
        ]
        write_verdict(self.connection, batch, begin(self.connection, batch), judgement, results)
        self.batch = None
        self.connection.commit()


@pytest.fixture
def worker(lines: Lines) -> Iterator[Worker]:
    with closing(connect("worker")) as connection:
        yield Worker(connection)


def enqueue(lines: Lines, payload: Mapping[str, Any], count: int = 10) -> None:
    lines.session.execute(INSERT, (Jsonb(payload), count))


def read(lines: Lines, queue: str = "tag") -> list[tuple[dict[str, Any], int]]:
    """Return payload and entry count of the batches that were handed on, in order."""
    found = lines.session.execute(
        "select payload, entry_count from rowferry.batch_queue where queue_name = %s order by id", (queue,)
    )
    return [(row["payload"], row["entry_count"]) for row in found]


def all_of(outcome: str, ids: str = "0123456789") -> dict[str, str]:
    return dict.fromkeys(ids, outcome)


@pytest.mark.versions
def test_a_range_that_is_done_at_once_is_handed_on_as_it_is(lines: Lines, worker: Worker) -> None:
    """Without the choices of its own queue; due now, with the attempts of the batch before."""
    enqueue(lines, RANGE | {"since": "2026-01-01", "read_again": ["kept"]})
    worker.finish(Verdict.DONE, all_of("migrated", "01234") | all_of("kept", "567") | all_of("deleted", "89"))
    assert read(lines) == [(RANGE_ALONE | {"since": "2026-01-01"}, 8)]
    batch = worker.claim("tag")
    assert (batch.entry_count, batch.max_attempts, batch.requeues, batch.crashes) == (8, 7, 0, 0)
    worker.connection.rollback()


def test_a_queue_that_only_an_operator_has_named_counts_each_entry_once(lines: Lines, worker: Worker) -> None:
    """Its retries read what the last attempt has left, although no plan has said so."""
    lines.steer(("one", "load"), "next = '{inspect}'")
    enqueue(lines, RANGE)
    worker.finish(Verdict.DONE, all_of("migrated"))
    assert read(lines, "inspect") == [(RANGE_ALONE | {"unsettled": None}, 10)]
    worker.claim("inspect")
    worker.finish(Verdict.RETRY, all_of("migrated", "01234567") | all_of("failed", "89"))
    assert read(lines, "inspect") == [(RANGE_ALONE | {"unsettled": ["8", "9"]}, 10)]


class Case(NamedTuple):
    """What a batch of so many entries says, how its attempts end, and what is handed on."""

    payload: dict[str, Any]
    entries: int
    attempts: list[tuple[Verdict, dict[str, str]]]
    handed_on: list[tuple[dict[str, Any], int]]
    tag: dict[str, Any] = {}  # noqa: RUF012 - never changed
    """What the plan says of the next queue."""
    next: str = "tag"
    """What an operator has said of the queues that are next, with commas."""


ITEMS = [{"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "c", "n": 3}]
OBJECTS = {"entries": "p/*", "objects": "range", "first": "p/a", "last": "p/z", "size": 100, "side": "legacy"}
MOVED = [(Verdict.DONE, all_of("migrated"))]
CASES = {
    "no parts of an upload": Case(
        {"entries": "public.t.key", "upload": 7, "first": "1", "last": "9"},
        9,
        [(Verdict.DONE, all_of("migrated", "123456789"))],
        [],
    ),
    "what the plan says of the next queue, beside the entries": Case(
        RANGE, 10, MOVED, [(RANGE_ALONE | {"set": {"a": "b"}}, 10)], tag={"payload": {"set": {"a": "b"}}}
    ),
    "what the plan says, before what the batch says": Case(
        OBJECTS, 2, [(Verdict.DONE, {"p/a": "kept", "p/b": "kept"})], [(OBJECTS | {"size": 5}, 2)],
        tag={"payload": {"size": 5}},
    ),
    "once, to a queue that is named twice": Case(RANGE, 10, MOVED, [(RANGE_ALONE, 10)], next="tag, verify, tag"),
    "nothing without a next queue": Case(RANGE, 10, MOVED, [], next=""),
    "nothing for a queue of another migration": Case(RANGE, 10, MOVED, [], next="verify"),
    "the first that is settled, in whichever attempt": Case(
        RANGE, 10, [(Verdict.RETRY, all_of("failed")), *MOVED], [(RANGE_ALONE, 10)]
    ),
    "none that the application has changed": Case(RANGE, 10, [(Verdict.DONE, all_of("changed"))], []),
    "none that the application has deleted": Case(RANGE, 10, [(Verdict.DONE, all_of("deleted"))], []),
    "what is settled of a released batch, behind its first entry": Case(
        RANGE, 10, [(Verdict.RELEASED, {"0": "failed"} | all_of("migrated", "12"))],
        [(RANGE_ALONE | {"only": ["1", "2"]}, 2)],
    ),
    "what was left, of a queue that reads again": Case(
        RANGE | {"unsettled": None, "read_again": ["migrated", "kept"]}, 10,
        [
            (Verdict.RETRY, all_of("kept", "0123456") | {"7": "missing", "8": "conflict", "9": "failed"}),
            (Verdict.RETRY, {"7": "kept", "8": "migrated", "9": "failed"}),
            (Verdict.DONE, all_of("kept")),  # whatever it reads
        ],
        [(RANGE_ALONE | {"only": part}, len(part)) for part in (list("0123456"), ["7", "8"], ["9"])],
    ),
    "a range of objects, with its side": Case(
        OBJECTS | {"on_conflict": "older", "read_again": ["kept"], "unsettled": None},
        3,
        [(Verdict.RETRY, {"p/a": "migrated", "p/b": "failed", "p/c": "migrated"}), (Verdict.DONE, {"p/b": "kept"})],
        [(OBJECTS | {"only": ["p/a", "p/c"]}, 2), (OBJECTS | {"only": ["p/b"]}, 1)],
    ),
    "no listing: its ranges are": Case(
        {"entries": "p/*", "objects": "listing", "first": "p/", "last": None, "size": 100}, 0, [(Verdict.DONE, {})], []
    ),
    "items, as they are settled": Case(
        {"entries": "orders", "items": ITEMS, "unsettled": None, "mode": "x"},
        3,
        [(Verdict.RETRY, {"a": "failed", "b": "migrated", "c": "migrated"}), (Verdict.DONE, {"a": "migrated"})],
        [({"entries": "orders", "items": ITEMS[1:]}, 2), ({"entries": "orders", "items": ITEMS[:1]}, 1)],
    ),
    "of a batch that was handed on in parts, that part": Case(
        RANGE | {"only": ["3", "4"]}, 2, [(Verdict.DONE, all_of("migrated", "34"))],
        [(RANGE_ALONE | {"only": ["3", "4"]}, 2)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_this_is_handed_on(case: str, lines: Lines, worker: Worker) -> None:
    payload, count, attempts, handed_on, tag, following = CASES[case]
    lines.register("two", {"load": {"next": ["verify"]}, "verify": {}})
    lines.register("one", {"load": {"next": ["tag"]}, "tag": tag, "verify": {}})
    if following != "tag":
        lines.steer(("one", "load"), f"next = '{{{following}}}'")
    enqueue(lines, payload, count)
    for verdict, outcomes in attempts:
        worker.finish(verdict, outcomes)
    assert read(lines) == handed_on
    assert bool(read(lines, "verify")) == ("verify" in following)


COUNTED: dict[str, tuple[dict[str, Any], dict[str, str], dict[str, int]]] = {
    "those of a retry that reads what was left": (
        {"unsettled": None}, {"8": "migrated", "9": "kept"}, {"migrated": 9, "kept": 1}
    ),
    "once, what was migrated and is not there again": (
        {}, all_of("kept", "01234") | all_of("deleted", "567") | all_of("migrated", "89"), {"migrated": 7, "deleted": 3}
    ),
}  # fmt: skip
"""What else the batch says, the outcomes of its second attempt, and how they are counted with those of the first."""


@pytest.mark.parametrize("case", COUNTED)
def test_entries_of_two_attempts_are_counted(case: str, lines: Lines, worker: Worker) -> None:
    said, outcomes, counts = COUNTED[case]
    enqueue(lines, RANGE | {"read_again": ["migrated", "kept"]} | said)
    worker.finish(Verdict.RETRY, all_of("migrated", "01234567") | all_of("failed", "89"))
    worker.finish(Verdict.DONE, outcomes)
    (row,) = lines.session.execute("select * from rowferry.batch_queue where queue_name = 'load'").fetchall()
    assert row["entry_count"] == 10
    assert {name: row[name] for name in ("migrated", "kept", "deleted", "failed") if row[name]} == counts


def test_a_done_batch_that_is_put_back_is_read_anew(lines: Lines, worker: Worker) -> None:
    enqueue(lines, RANGE | {"unsettled": None, "read_again": ["migrated", "kept"]})
    worker.finish(Verdict.DONE, all_of("kept"))
    lines.session.execute("update rowferry.batch_queue set status = 'INIT' where queue_name = 'load'")
    assert worker_payload(lines)["unsettled"] is None
    worker.finish(Verdict.DONE, all_of("kept"))
    (row,) = lines.session.execute("select * from rowferry.batch_queue where queue_name = 'load'").fetchall()
    assert (row["entry_count"], row["kept"]) == (10, 10)


def test_what_a_large_batch_says_is_stored_once_and_handed_on_as_it_is(lines: Lines, worker: Worker) -> None:
    """Writing 40 kB anew for a verdict, and taking them apart for the next queue, were four fifths of a verdict."""
    random = Random(1)
    items = [{"id": str(number), "text": random.randbytes(400).hex()} for number in range(50)]
    enqueue(lines, {"entries": "orders", "items": items, "unsettled": None}, len(items))
    before = read_stored_bytes(lines)
    worker.finish(Verdict.DONE, {item["id"]: "migrated" for item in items})
    assert before < read_stored_bytes(lines) < 2.2 * before, "one more payload: that of the batch handed on"
    assert [payload["items"] for payload, _ in read(lines)] == [items]


def read_stored_bytes(lines: Lines) -> int:
    """Return what all versions of all payloads take outside of the table's rows."""
    (row,) = lines.session.execute(
        "select pg_relation_size(reltoastrelid)::bigint as bytes from pg_class "
        "where oid = 'rowferry.batch_queue'::regclass"
    ).fetchall()
    return int(row["bytes"])


def test_a_new_pass_over_a_batch_reads_all_of_it(lines: Lines, worker: Worker) -> None:
    enqueue(lines, RANGE | {"unsettled": None, "read_again": ["migrated", "kept"]})
    worker.finish(Verdict.ERROR, all_of("kept", "01234567") | all_of("failed", "89"))
    choices = Jsonb({"read_again": ["migrated", "kept"], "deep": True})
    lines.session.execute("select rowferry.renew_batches(1, 'load', %s)", (choices,))
    assert worker_payload(lines) == RANGE | {"unsettled": None, "read_again": ["migrated", "kept"], "deep": True}


def worker_payload(lines: Lines) -> dict[str, Any]:
    (row,) = lines.session.execute("select payload from rowferry.batch_queue where queue_name = 'load'").fetchall()
    return row["payload"]


def test_only_a_claimed_batch_hands_on(lines: Lines, worker: Worker) -> None:
    enqueue(lines, RANGE)
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        worker.connection.execute("select rowferry.hand_on(1, '{1}', true)")


MOST_STEPS = 60


def ids_of(payload: Mapping[str, Any]) -> list[str]:
    """Return the ids that a batch of a range of one-digit ids means."""
    ids = [str(number) for number in range(int(payload["first"]), int(payload["last"]) + 1)]
    return [each for each in ids if each in payload.get("only", ids)]


@pytest.mark.versions
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), is_tracked=st.booleans())
def test_every_entry_is_handed_on_exactly_once_whatever_happens(
    lines: Lines, worker: Worker, data: st.DataObject, *, is_tracked: bool
) -> None:
    """Retries, requeues, halves and time budgets in any order, in a queue that reads again and in one that does not."""
    worker.connection.rollback()
    lines.session.execute("truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure")
    enqueue(lines, RANGE | ({"unsettled": None, "read_again": ["kept", "migrated"]} if is_tracked else {}))
    settled = set[str]()
    for step in range(MOST_STEPS):
        lines.session.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
        worker.connection.execute("select set_config('rowferry.claim_starts', '', false)")
        worker.batch = claim_batch(worker.connection, ["load"])
        if worker.batch is None:
            worker.connection.rollback()
            break
        batch, means = worker.batch, ids_of(worker.batch.payload)
        left = batch.payload.get("unsettled")
        todo = [each for each in means if (each in (left or means) if is_tracked else each not in settled)]
        deed = data.draw(st.sampled_from(["finish", "finish", "halve", "put back", "lose"]))
        if deed == "lose":
            worker.connection.rollback()
            continue
        if deed == "halve" and len(todo) > 1:
            first, last, middle = means[0], means[-1], len(todo) // 2
            split(worker.connection, batch.id, first, todo[middle - 1], count=middle)
            split(worker.connection, batch.id, todo[middle], last, count=len(todo) - middle)
            worker.finish(Verdict.DONE, {})
            continue
        if deed == "put back" and len(todo) > 1:
            split(worker.connection, batch.id, todo[1], means[-1], count=len(todo) - 1, keep=todo[0])
            todo = todo[:1]
        passes = st.sampled_from(["migrated", "kept", "failed"]) if step < MOST_STEPS // 2 else st.just("kept")
        outcomes = {each: data.draw(passes) for each in todo}
        failed = {each for each in todo if outcomes[each] == "failed"}
        settled |= set(todo) - failed
        worker.finish(data.draw(st.sampled_from([Verdict.RETRY, Verdict.ERROR])) if failed else Verdict.DONE, outcomes)
    handed_on = [(payload, count, ids_of(payload)) for payload, count in read(lines)]
    assert sorted(each for _, _, ids in handed_on for each in ids) == list("0123456789")
    assert [count for _, count, _ in handed_on] == [len(ids) for _, _, ids in handed_on]
