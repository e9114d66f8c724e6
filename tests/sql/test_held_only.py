"""A worker's role can finish, fail and split what it has claimed in this transaction, and nothing else."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from rowferry.db.connection import Connection, call, connect
from rowferry_cli.setup.grants import compose_grants
from support.entries.entry_table import EntryTable
from support.postgres.roles import new_role
from support.queue.held_batches import split

DONE: tuple[Any, ...] = ("DONE", None, None, 10, 0, 0, [], [], [], [], [], [])
ACTS = {"finish_batch": DONE, "fail_batch": ("ERROR", None, "e")}


@pytest.fixture
def worker(ten: EntryTable) -> Iterator[Connection]:
    """A session of a role that may do what workers do, and no more."""
    with new_role(ten.dsn) as role, closing(connect("test")) as connection:
        connection.execute(compose_grants(role, ["worker"], None))
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        connection.commit()
        yield connection


@pytest.fixture(params=ACTS)
def function(request: pytest.FixtureRequest) -> str:
    return request.param


def claim(worker: Connection) -> tuple[int, int]:
    (batch,) = call(worker, "claim_batch", [1], ["migrate"])
    return batch["id"], begin(worker, batch["id"])


def begin(worker: Connection, batch_id: int) -> int:
    (attempt,) = call(worker, "begin_attempt", batch_id, 0, "w")
    return attempt["attempt_id"]


def act(worker: Connection, function: str, batch_id: int, attempt_id: int) -> None:
    call(worker, function, batch_id, attempt_id, *ACTS[function])


def test_a_batch_that_was_not_claimed_cannot_be_finished(worker: Connection, function: str) -> None:
    attempt_id = begin(worker, 1)
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        act(worker, function, 1, attempt_id)


def test_a_batch_of_an_earlier_transaction_cannot_be_finished(worker: Connection, function: str) -> None:
    """Nor does it help to keep the claim's seal: it is the transaction's."""
    batch_id, attempt_id = claim(worker)
    (row,) = worker.execute("select current_setting('rowferry.claims') as seal").fetchall()
    worker.rollback()
    worker.execute("select set_config('rowferry.claims', %s, true)", (row["seal"],))
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        act(worker, function, batch_id, attempt_id)


def keep_seal(worker: Connection) -> tuple[int, int]:
    """Give a claim's lock back and keep its seal; return the batch, and an attempt at it."""
    worker.execute("savepoint before")
    batch_id, _ = claim(worker)
    (row,) = worker.execute("select current_setting('rowferry.claims') as seal").fetchall()
    worker.execute("rollback to savepoint before")
    worker.execute("select set_config('rowferry.claims', %s, true)", (row["seal"],))
    return batch_id, begin(worker, batch_id)


def test_a_seal_that_was_kept_over_a_savepoint_finishes_nothing_that_another_holds(
    worker: Connection, ten: EntryTable, function: str
) -> None:
    """Not even where another batch is free."""
    ten.add_legacy(range(10, 20)).enqueue(10)
    batch_id, attempt_id = keep_seal(worker)
    with psycopg.connect(ten.dsn) as other:
        other.execute("select rowferry.claim_batch('{1}', '{migrate}')")
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
            act(worker, function, batch_id, attempt_id)
        other.rollback()


def test_a_seal_that_was_kept_finishes_nothing_that_another_has_finished(
    worker: Connection, ten: EntryTable, function: str
) -> None:
    batch_id, attempt_id = keep_seal(worker)
    ten.execute("update rowferry.batch_queue set status = 'DONE', migrated = entry_count")
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        act(worker, function, batch_id, attempt_id)


GUESS = """
select string_agg(encode(sha256(convert_to(seen, 'UTF8')), 'hex'), ' ') as seals
from (select concat_ws(' ', guessed.key, pg_current_xact_id(), 1) as seen from unnest(%s::text[]) as guessed (key)) as s
"""


def test_a_seal_made_without_the_key_claims_nothing(worker: Connection, function: str) -> None:
    """The transaction's number and the batch's are no secrets, and a worker may set the setting."""
    attempt_id = begin(worker, 1)
    (row,) = worker.execute(GUESS, ([None, "", "0"],)).fetchall()
    worker.execute("select set_config('rowferry.claims', %s, true)", (row["seals"],))
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        act(worker, function, 1, attempt_id)


def test_the_claim_of_a_batch_is_none_of_another(worker: Connection, ten: EntryTable, function: str) -> None:
    ten.add_legacy(range(10, 20)).enqueue(10)
    claimed, _ = claim(worker)
    (other,) = {batch["id"] for batch in ten.batches()} - {claimed}
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match=f"batch {other} is not claimed"):
        act(worker, function, other, begin(worker, other))


def test_a_transaction_that_has_claimed_two_batches_may_end_either(
    worker: Connection, ten: EntryTable, function: str
) -> None:
    ten.add_legacy(range(10, 20)).enqueue(10)
    ten.execute("update rowferry.batch_queue set queue_name = 'verify' where id = 2")
    claimed = [batch["id"] for queue in ("migrate", "verify") for batch in call(worker, "claim_batch", [1], [queue])]
    assert claimed == [1, 2]
    for batch_id in claimed:
        act(worker, function, batch_id, begin(worker, batch_id))


def test_what_was_claimed_is_finished_once_and_under_a_savepoint_that_was_rolled_back(
    worker: Connection, function: str
) -> None:
    batch_id, attempt_id = claim(worker)
    with worker.transaction() as savepoint:
        split(worker, batch_id, "5", "9", count=5, keep="4")
        act(worker, function, batch_id, attempt_id)
        raise psycopg.Rollback(savepoint)
    act(worker, function, batch_id, attempt_id)
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        act(worker, "finish_batch", batch_id, attempt_id)


def test_a_batch_that_was_not_claimed_cannot_be_split(worker: Connection) -> None:
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        split(worker, 1, "5", "9", count=5, keep="4")


def test_the_key_of_the_seals_is_readable_by_no_worker(worker: Connection) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        worker.execute("select key from rowferry.claim_key")
    worker.rollback()
    with pytest.raises(errors.InsufficientPrivilege):
        worker.execute("select rowferry.seal_claim(null, 1)")


WHOLE = {"entries": "public.avatars.path", "first": "0", "last": "9", "on_conflict": "fail"}
ITEMS = {"entries": "orders", "items": [{"id": "1", "a": 1}, {"id": "2"}], "unsettled": None}
OBJECTS = {"entries": "p/*", "objects": "range", "first": "p/b", "last": "p/y", "size": 100, "side": "legacy"}

PARTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a range of a table": (WHOLE, {"first": "3", "last": "5"}),
    "the end of a range": (WHOLE, {"first": "3"}),
    "some ids of a range": (WHOLE, {"last": "5", "only": ["3"]}),
    "some of those that are meant": (
        WHOLE | {"only": ["1", "2"], "unsettled": ["1"]},
        {"only": ["2"], "unsettled": []},
    ),
    "a range of objects": (OBJECTS, {"first": "p/c", "last": "p/y"}),
    "items": (ITEMS, {"items": [{"id": "2"}], "unsettled": None}),
    "items that were left": (ITEMS, {"items": [{"id": "2"}], "unsettled": ["2"]}),
}
NO_PARTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another table": (WHOLE, {"entries": "public.salaries.key"}),
    "another choice": (WHOLE, {"first": "3", "last": "5", "on_conflict": "overwrite"}),
    "another side": (OBJECTS, {"side": "production"}),
    "a listing anew": (OBJECTS, {"objects": "listing"}),
}


def split_payload(worker: Connection, ten: EntryTable, own: dict[str, Any], **patches: Jsonb) -> None:
    """Split the batch, whose payload is `own`, by these patches."""
    ten.execute("update rowferry.batch_queue set payload = %s", (Jsonb(own),))
    batch_id, _ = claim(worker)
    call(worker, "split_batch", batch_id, patches["part"], 1, 0, patches["keep"])


@pytest.mark.parametrize("name", PARTS)
def test_a_part_narrows_what_the_batch_means(worker: Connection, ten: EntryTable, name: str) -> None:
    own, part = PARTS[name]
    split_payload(worker, ten, own, part=Jsonb(part), keep=Jsonb(part))
    worker.commit()
    had = {"last_before": own["last"]} if "last" in part else {}
    assert [batch["payload"] for batch in ten.batches()] == [own | part | had, own | part]


def test_a_part_says_nothing_else(worker: Connection, ten: EntryTable, subtests: pytest.Subtests) -> None:
    whole = Jsonb({})
    for name, (own, part) in NO_PARTS.items():
        for patches in ({"part": Jsonb(part), "keep": whole}, {"part": whole, "keep": Jsonb(part)}):
            with subtests.test(name, **patches), pytest.raises(errors.InvalidParameterValue):
                split_payload(worker, ten, own, **patches)
            worker.rollback()


def test_how_far_a_folder_was_copied_is_noted_at_a_held_batch_alone(worker: Connection, ten: EntryTable) -> None:
    noted = {"id": "7", "key": "0/7/a", "since": None, "objects": 3, "bytes": 30}
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        call(worker, "note_folder", 1, Jsonb(noted))
    worker.rollback()
    batch_id, _ = claim(worker)
    call(worker, "note_folder", batch_id, Jsonb(noted))
    worker.commit()
    assert [batch["payload"]["folder"] for batch in ten.batches()] == [noted]
