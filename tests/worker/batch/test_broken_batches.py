"""A batch that cannot even be understood fails by itself: it stops no worker, and pauses no migration."""

import itertools
import json
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from rowferry.db.connection import connect, read_json
from support.entries.migration import Migration
from support.queue.at_work import at_work
from support.queue.paused_migration import state_of

DEEP = "[" * 1_000 + "]" * 1_000
NOT_UNDERSTOOD: dict[str, tuple[dict[str, Any], str]] = {
    "a list for a side": ({"objects": "listing", "side": ["legacy"]}, "TypeError"),
    "an object for a side": ({"objects": 1, "side": {}}, "TypeError"),
    "what no decoder reads": ({"entries": "unreadable"}, "RecursionError: too deep"),
}


def add_batch(migration: Migration, payload: str, queue: str = "migrate") -> None:
    """Put a batch in front of the others that counts two attempts."""
    migration.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts, run_after) "
        "select id, %s, %s::jsonb, 1, 2, now() - interval '1 day' from rowferry.migration",
        (queue, payload),
    )


@pytest.fixture
def forty(migration: Migration) -> Migration:
    return migration.given(40, 10)


def test_a_batch_that_is_not_understood_is_tried_as_often_as_others_and_fails_alone(
    forty: Migration, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """One error stands in for all that a decoder may raise: no payload that PostgreSQL keeps is known to do it."""

    def read(text: str | bytes) -> Any:
        if b"unreadable" in (text if isinstance(text, bytes) else text.encode()):
            raise RecursionError("too deep")
        return read_json(text)

    for payload, _ in NOT_UNDERSTOOD.values():
        add_batch(forty, json.dumps(payload))
    monkeypatch.setattr("rowferry_worker.batch.claim.read_json", read)
    for _ in range(4):
        forty.work()
        forty.make_due()
    batches = forty.batches()
    assert {batch["status"] for batch in batches[:4]} == {"DONE"}
    assert state_of(forty) == (False, "")
    for (name, (_, error)), batch in zip(NOT_UNDERSTOOD.items(), batches[4:], strict=True):
        with subtests.test(name):
            assert (batch["status"], batch["attempts"], batch["failed"]) == ("ERROR", 2, 1)
            assert error in batch["error"]
    forty.check_balance()


def test_what_no_worker_could_read_is_refused_where_it_is_enqueued(forty: Migration, subtests: pytest.Subtests) -> None:
    large = json.dumps({"entries": "items", "items": [{"id": "1", "text": "x" * 34_000_000}]})
    for name, payload in {"null": "null", "a number": "5", "an array": "[1]"}.items():
        with subtests.test(name), pytest.raises(psycopg.errors.CheckViolation):
            add_batch(forty, payload)
    for name, payload in {"deep": f'{{"a": {DEEP}}}', "large": large}.items():
        with subtests.test(name), pytest.raises(psycopg.errors.InvalidParameterValue, match="or is larger than 32 MiB"):
            add_batch(forty, payload)
    with connect("test", autocommit=True) as session:
        items = Jsonb([{"id": "1", "text": json.loads("[" * 100 + "]" * 100)}])
        with subtests.test("items"), pytest.raises(psycopg.errors.InvalidParameterValue, match="64 levels"):
            session.execute("select * from rowferry.enqueue_items('avatars', 'migrate', %s)", (items,))
    assert len(forty.batches()) == 4
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="64 levels"):
        forty.execute("update rowferry.migration set plan = plan || %s::jsonb", (f'{{"deep": {DEEP}}}',))


@pytest.mark.parametrize("alone", [0, 5], ids=["beside others", "before others are due"])
def test_one_batch_pauses_no_migration(forty: Migration, alone: int) -> None:
    """Its ids are not those of the table, as if the column had changed; the others say that it has not."""
    forty.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour'")
    add_batch(forty, '{"entries": "public.avatars.path", "first": "x", "last": "y"}')
    hours = itertools.count(0, 3600)
    with at_work(clock=lambda: next(hours)) as take_turn:  # no rest after a fault lasts until the next turn
        for turn in range(20):
            take_turn()
            if turn >= alone:
                forty.make_due()
            if "INIT" not in forty.statuses():
                break
    assert state_of(forty) == (False, "")
    *done, broken = forty.batches()
    assert {batch["status"] for batch in done} == {"DONE"}
    assert (broken["status"], broken["attempts"]) == ("ERROR", 2)
    assert "are no longer of type bigint" in broken["error"]
