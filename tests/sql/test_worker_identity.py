"""A worker's role acts as a worker only where no other session is that worker."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from rowferry.db.connection import connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.ledger import Ledger
from support.entries.entry_table import EntryTable
from support.postgres.roles import grant, log_in, new_role
from support.queue.held_batches import claim

Session = psycopg.Connection[tuple[object, ...]]
LIVE, OWN = "h:1:live", "h:2:own"
AS_LIVE = {
    "begin_attempt": (1, 0, LIVE, None),
    "lose_attempts": ([1], LIVE),
    "end_attempt": (1, "RELEASED", "it was told so"),
    "heartbeat": (LIVE, "h", 1, "0", 9, 9, ["migrate"], Jsonb({"x PUT": 1})),
    "update_worker": (LIVE, Jsonb({"in_hand": {"1": 9}, "stopped": True})),
}


@pytest.fixture
def session(ten: EntryTable) -> Iterator[Session]:
    """A session of a role that may do what workers do, in autocommit, beside a live worker that holds batch 1."""
    with new_role(ten.dsn) as role:
        grant(ten, {"worker": role})
        with closing(Ledger(LIVE)) as ledger, closing(connect("live")) as live:
            ledger.call("heartbeat", LIVE, "h", 1, "0", 1, 1, ["migrate"])
            assert begin_attempt(ledger, claim(live), LIVE).id == 1
            with psycopg.connect(log_in(ten, role), autocommit=True) as session:
                yield session


def call(session: Session, function: str, *arguments: object) -> None:
    places = sql.SQL(", ").join([sql.Placeholder()] * len(arguments))
    session.execute(sql.SQL("select rowferry.{}({})").format(sql.Identifier(function), places), arguments)


def test_nothing_is_done_in_the_name_of_a_worker_that_lives(
    session: Session, ten: EntryTable, subtests: pytest.Subtests
) -> None:
    for function, arguments in AS_LIVE.items():
        before = ten.execute(EVERYTHING)
        with subtests.test(function):
            with pytest.raises(errors.InsufficientPrivilege, match=f"another session is worker {LIVE}"):
                call(session, function, *arguments)
            assert ten.execute(EVERYTHING) == before


def test_a_worker_loses_its_own_attempts_only(session: Session, ten: EntryTable) -> None:
    before = ten.execute(EVERYTHING)
    call(session, "lose_attempts", [1], OWN)
    assert ten.execute(EVERYTHING) == before


EVERYTHING = """
select
    (select jsonb_agg(a) from rowferry.batch_attempt as a) as attempts,
    (select jsonb_agg(w) from rowferry.worker as w) as workers,
    (select jsonb_agg(m) from rowferry.migration as m) as migrations
"""


def test_a_role_may_register_work_and_stop_as_a_worker_of_its_own(session: Session, ten: EntryTable) -> None:
    call(session, "heartbeat", OWN, "h", 2, "0", 1, 1, ["migrate"], Jsonb({}))
    call(session, "begin_attempt", 1, 0, OWN, None)
    call(session, "end_attempt", 2, "RELEASED", "it was mine")
    call(session, "update_worker", OWN, Jsonb({"stopped": True}))
    (row,) = ten.execute("select verdict from rowferry.batch_attempt where id = 2")
    assert row["verdict"] == "RELEASED"
