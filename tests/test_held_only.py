"""A worker's role can finish, fail and split what it has claimed in this transaction, and nothing else."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from entry_table import EntryTable
from rowferry.db.connection import Connection, call, connect
from rowferry.db.grants import compose_grants

DONE: tuple[Any, ...] = ("DONE", None, None, 10, 0, 0, [], [], [], [], [], [])
ACTS = {
    "finish_batch": DONE,
    "fail_batch": ("ERROR", None, "e"),
}


@pytest.fixture
def worker(ten: EntryTable) -> Iterator[Connection]:
    """A session of a role that may do what workers do, and no more."""
    role = sql.Identifier(f"worker_of_{ten.dsn.rpartition('_')[2]}")
    with closing(connect("test")) as connection:
        connection.execute(sql.SQL("create role {}").format(role))
        connection.execute(compose_grants(role.as_string().strip('"'), ["worker"], None))
        connection.execute(sql.SQL("set role {}").format(role))
        connection.commit()
        yield connection
        connection.rollback()
        connection.execute("reset role")
        connection.execute(sql.SQL("drop owned by {}").format(role))
        connection.execute(sql.SQL("drop role {}").format(role))
        connection.commit()


def claim(worker: Connection) -> tuple[int, int]:
    (batch,) = call(worker, "claim_batch", ["migrate"])
    return batch["id"], begin(worker, batch["id"])


def begin(worker: Connection, batch_id: int) -> int:
    (attempt,) = call(worker, "begin_attempts", [batch_id], [0], "w")
    return attempt["attempt_id"]


def act(worker: Connection, function: str, batch_id: int, attempt_id: int) -> None:
    call(worker, function, batch_id, attempt_id, *ACTS[function])


@pytest.mark.parametrize("function", ACTS)
def test_a_batch_that_was_not_claimed_cannot_be_finished(worker: Connection, function: str) -> None:
    attempt_id = begin(worker, 1)
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        act(worker, function, 1, attempt_id)


@pytest.mark.parametrize("function", ACTS)
def test_a_batch_of_an_earlier_transaction_cannot_be_finished(worker: Connection, function: str) -> None:
    """Nor does it help to keep the claim's seal: it is the transaction's."""
    batch_id, attempt_id = claim(worker)
    (row,) = worker.execute("select current_setting('rowferry.claims') as seal").fetchall()
    worker.rollback()
    worker.execute("select set_config('rowferry.claims', %s, true)", (row["seal"],))
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        act(worker, function, batch_id, attempt_id)


@pytest.mark.parametrize("function", ACTS)
def test_what_was_claimed_is_finished_once_and_under_a_savepoint_that_was_rolled_back(
    worker: Connection, function: str
) -> None:
    batch_id, attempt_id = claim(worker)
    with worker.transaction() as savepoint:
        call(worker, "split_batch", batch_id, "5", "9", 5, 0, "4")
        act(worker, function, batch_id, attempt_id)
        raise psycopg.Rollback(savepoint)
    act(worker, function, batch_id, attempt_id)
    with pytest.raises(errors.NoDataFound):
        act(worker, "finish_batch", batch_id, attempt_id)


@pytest.mark.parametrize(("first", "last", "keep"), [("-999", "5", None), ("3", "99999", None), ("5", "9", "70")])
def test_a_part_lies_inside_of_its_batch(worker: Connection, first: str, last: str, keep: str | None) -> None:
    batch_id, _ = claim(worker)
    with pytest.raises(errors.InvalidParameterValue, match="does not lie inside"):
        call(worker, "split_batch", batch_id, first, last, 5, 0, keep)


def test_a_batch_that_was_not_claimed_cannot_be_split(worker: Connection) -> None:
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"):
        call(worker, "split_batch", 1, "5", "9", 5, 0, "4")


def test_the_key_of_the_seals_is_readable_by_no_worker(worker: Connection) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        worker.execute("select key from rowferry.claim_key")
    worker.rollback()
    with pytest.raises(errors.InsufficientPrivilege):
        worker.execute("select rowferry.seal_claim(1)")


def rename(ten: EntryTable, name: str, written: str) -> None:
    """Give the table another name, in the database and in the plan of the batches that wait."""
    ten.execute(sql.SQL("alter table public.avatars rename to {}").format(sql.Identifier(name)))
    ten.execute("alter table rowferry.migration disable trigger migration_plan_guard")
    ten.execute(
        "update rowferry.migration set plan = jsonb_set(plan, '{entries,0,table}', to_jsonb(%s::text))", (written,)
    )
    label = f"{written}.path"
    ten.execute(
        "update rowferry.batch_queue set payload = payload || jsonb_build_object('entries', %s::text)", (label,)
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Avatars", "public.Avatars"),
        ("Avatars", "Avatars"),
        ("user pictures", "public.user pictures"),
        ("a.b", 'public."a.b"'),
        ('a"b', '"public"."a""b"'),
        ("order", "public.order"),
    ],
)
def test_a_batch_of_a_table_with_any_name_can_be_split(
    worker: Connection, ten: EntryTable, name: str, written: str
) -> None:
    rename(ten, name, written)
    batch_id, _ = claim(worker)
    with pytest.raises(errors.InvalidParameterValue, match="does not lie inside"), worker.transaction():
        call(worker, "split_batch", batch_id, "5", "99", 5, 0, "4")
    call(worker, "split_batch", batch_id, "5", "9", 5, 0, "4")


def test_a_split_runs_no_code_of_the_ids_type_with_the_owners_rights(worker: Connection, ten: EntryTable) -> None:
    """A domain's CHECK is whatever its maker says; its order is that of the base type."""
    ten.execute(
        "create function public.betray(bigint) returns boolean language plpgsql as "
        "$$ begin raise exception 'run as %', current_user; end $$"
    )
    ten.execute("create domain public.number as bigint")
    ten.execute("alter table public.avatars alter column id type public.number")
    ten.execute("alter domain public.number add check (public.betray(value)) not valid")
    batch_id, _ = claim(worker)
    with pytest.raises(errors.InvalidParameterValue, match="does not lie inside"), worker.transaction():
        call(worker, "split_batch", batch_id, "5", "99", 5, 0, "4")
    call(worker, "split_batch", batch_id, "5", "9", 5, 0, "4")
