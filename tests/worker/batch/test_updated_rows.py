"""Rows are updated if they still are as they were read; every other one has a result that says why not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import Connection, connect
from rowferry.db.entries import EntryQueries
from rowferry.db.timeouts import LOCK_TIMEOUT
from rowferry.errors import MigrationFault, ObjectNotFound, ServerFault
from rowferry.keys import Form
from rowferry_worker.batch.context import BatchContext, BatchReleased
from rowferry_worker.batch.rows import Move, look_again, rewrite_rows, update_rows, wait_for_turn
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.steps import StepClock
from support.entries.entry_table import FROM, TO, EntryTable
from support.processes.processes import wait_for


@pytest.fixture
def connection(table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setenv(LOCK_TIMEOUT, "0.3")
    table.add_legacy(range(5))
    with closing(connect("test")) as connection:
        yield connection


def entry(number: int, form: str = FROM) -> Entry:
    return Entry(str(number), f"{form}u{number}/me.png")


def move(number: int, outcome: Outcome = Outcome.MIGRATED) -> Move:
    return Move(entry(number), f"{TO}u{number}/me.png", outcome, number)


def queries_of(table: EntryTable, connection: Connection) -> EntryQueries:
    return EntryQueries.of(connection, table.read_plan().entries[0])


def update(table: EntryTable, connection: Connection, *moves: Move, to: Form = "production") -> list[EntryResult]:
    found = update_rows(connection, queries_of(table, connection), moves or [move(n) for n in range(5)], to)
    connection.commit()
    return found


def outcomes(results: list[EntryResult]) -> dict[str, str]:
    return {result.entry.id: str(result.outcome) for result in results}


def forms(table: EntryTable) -> str:
    """Return the first letter of each row's form, by id; _ for a null."""
    return "".join((key or "_")[0] for key in table.rows().values())


def test_each_row_has_its_own_outcome_and_bytes(table: EntryTable, connection: Connection) -> None:
    kept = move(3, Outcome.KEPT)
    found = update(table, connection, move(1), move(2), kept)
    assert [(each.entry, each.outcome, each.size_bytes) for each in found] == [
        (entry(1), Outcome.MIGRATED, 1),
        (entry(2), Outcome.MIGRATED, 2),
        (entry(3), Outcome.KEPT, 3),
    ]
    assert forms(table) == "iaaai"


def test_a_row_that_was_rewritten_or_deleted_is_told_and_left(table: EntryTable, connection: Connection) -> None:
    table.execute("update public.avatars set path = 'image/other' where id = 1")
    table.execute("update public.avatars set path = null where id = 2")
    table.execute("delete from public.avatars where id = 3")
    found = update(table, connection)
    assert outcomes(found) == {"0": "migrated", "4": "migrated", "1": "changed", "2": "changed", "3": "deleted"}
    words = {each.entry.id: each.error for each in found}
    assert words["1"] == "the row was rewritten meanwhile and now holds 'image/other'"
    assert words["3"] == "the row was deleted meanwhile"
    assert table.rows() == {"0": f"{TO}u0/me.png", "1": "image/other", "2": None, "4": f"{TO}u4/me.png"}


def test_a_row_that_is_put_back_is_held_against_its_production_form(table: EntryTable, connection: Connection) -> None:
    update(table, connection)
    back = [Move(entry(n, TO), f"{FROM}u{n}/me.png", Outcome.MIGRATED, 0) for n in (1, 2)]
    table.execute("update public.avatars set path = 'image/other' where id = 2")
    assert outcomes(update(table, connection, *back, to="legacy")) == {"1": "migrated", "2": "changed"}
    assert forms(table) == "aiiaa"


def test_a_locked_row_is_busy_and_the_others_are_updated(table: EntryTable, connection: Connection) -> None:
    with psycopg.connect(table.dsn) as other:
        other.execute("select from public.avatars where id = 2 for update")
        found = {each.entry.id: each for each in update(table, connection)}
        other.rollback()
    assert [found[str(n)].outcome for n in (0, 1, 3, 4)] == [Outcome.MIGRATED] * 4
    assert (found["2"].outcome, found["2"].retryable) == (Outcome.FAILED, True)
    assert "another session holds a lock on the row" in found["2"].error
    assert forms(table) == "aaiaa"


def test_a_row_that_is_locked_for_a_moment_is_waited_for(table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_TIMEOUT, "100")
    table.add_legacy(range(5))
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with closing(connect("test")) as own, psycopg.connect(table.dsn) as other, ThreadPoolExecutor(1) as pool:
        other.execute("select from public.avatars where id = 2 for update")
        updating = pool.submit(update, table, own)
        wait_for(lambda: table.execute(waiting))
        other.rollback()
        assert set(outcomes(updating.result(100)).values()) == {"migrated"}


def add_trigger(table: EntryTable, body: str) -> None:
    table.execute(
        f"create function public.meddle() returns trigger language plpgsql as $$ begin {body} return new; end $$"
    )
    table.execute("create trigger t before update on public.avatars for each row execute function public.meddle()")


MEDDLING = [
    ("if new.id = 2 then new.path := 'avatar/another'; end if;", "took another key than it was given"),
    ("if new.id = 2 then return null; end if;", "left the row as it was"),
    ("if new.id = 2 then raise exception 'not this one'; end if;", "not this one"),
]


@pytest.mark.parametrize(("body", "words"), MEDDLING)
def test_what_a_trigger_does_to_a_row_costs_that_row_alone(
    table: EntryTable, connection: Connection, body: str, words: str
) -> None:
    add_trigger(table, body)
    found = {each.entry.id: each for each in update(table, connection)}
    assert (found["2"].outcome, found["2"].retryable) == (Outcome.FAILED, False)
    assert words in found["2"].error
    assert forms(table) == "aaiaa"


def test_a_row_that_does_not_get_its_state_is_refused(table: EntryTable, connection: Connection) -> None:
    table.execute("alter table public.avatars add store integer not null default 1")
    table.plan["entries"][0]["moved"] = {"store": [1, 2]}
    add_trigger(table, "if new.id = 2 then new.store := 1; end if;")
    found = {each.entry.id: each for each in update(table, connection)}
    assert "the row does not have the production form after the update" in found["2"].error
    assert table.execute("select id from public.avatars where store = 1") == [{"id": 2}]


def test_a_table_that_cannot_be_updated_is_the_migrations_fault(table: EntryTable, connection: Connection) -> None:
    queries = queries_of(table, connection)
    connection.commit()
    table.execute("alter table public.avatars rename column path to text")
    with pytest.raises(MigrationFault):
        update_rows(connection, queries, [move(1), move(2)])
    connection.rollback()


COMPUTED = {
    "objects": "array['o/' || folder || id]",
    "optional": "'tiny/' || size",
    "moved": {"store": [1, 2]},
}
CHANGES = [
    ("folder = 'q'", "has other objects now"),
    ("size = 'q'", "has other objects now"),
    ("store = 3", "no longer one to work on"),
    ("path = 'image/other'", "now holds 'image/other'"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_a_row_whose_objects_or_state_have_changed_is_left(
    table: EntryTable, connection: Connection, change: str, words: str
) -> None:
    table.execute(
        "alter table public.avatars add folder text default 'p', add size text default 'p', add store int default 1"
    )
    table.plan["entries"][0] |= {**COMPUTED, "production_object": "m/", "to": "image/"}
    moves = [
        Move(Entry(str(n), f"{FROM}u{n}/me.png", (f"o/p{n}",), ("tiny/p",)), f"{FROM}u{n}/me.png", Outcome.MIGRATED, 0)
        for n in (1, 2)
    ]
    table.execute(f"update public.avatars set {change} where id = 2")
    found = {each.entry.id: each for each in update(table, connection, *moves)}
    assert (found["1"].outcome, found["2"].outcome) == (Outcome.MIGRATED, Outcome.CHANGED)
    assert words in found["2"].error
    assert table.execute("select id from public.avatars where store = 2") == [{"id": 1}]


# Entries that are not updated


def test_a_failure_is_forgotten_where_the_row_has_changed_since(table: EntryTable, connection: Connection) -> None:
    nothing, broken = ObjectNotFound("NoSuchKey", "gone"), ServerFault("InternalError", "broken")
    given = [
        EntryResult(entry(0), Outcome.KEPT),
        EntryResult.from_error(entry(1), nothing, Outcome.MISSING),
        EntryResult.from_error(entry(2), broken),
        EntryResult.from_error(entry(3), broken),
    ]
    table.execute("update public.avatars set path = 'image/other' where id in (0, 1)")
    table.execute("delete from public.avatars where id = 3")
    found = look_again(fake_context(connection), queries_of(table, connection), given, "legacy")
    assert [each.outcome for each in found] == ["kept", "changed", "failed", "deleted"]
    assert (found[0], found[2]) == (given[0], given[2])


# The rate of rows


class Limit:
    """A ledger that says how long to wait for the turn of rows."""

    def __init__(self, wait: timedelta) -> None:
        self.wait = wait
        self.reserved: list[int] = []

    def call(self, function: str, migration_id: int, rows: int, per_second: float) -> list[dict[str, timedelta]]:
        assert (function, migration_id, per_second) == ("take_row_turn", 1, 40.0)
        self.reserved.append(rows)
        return [{function: self.wait}]


def fake_context(connection: Any, limit: Limit | None = None, *, gives_up: bool = False) -> BatchContext:
    nothing: Any = None
    queue: Any = SimpleNamespace(spec=SimpleNamespace(name="note"))
    migration: Any = SimpleNamespace(
        name="avatars", plan=SimpleNamespace(database=SimpleNamespace(max_rows_per_second=40.0 if limit else None))
    )
    ledger: Any = limit
    give_up = Event()
    if gives_up:
        give_up.set()
    batch: Any = SimpleNamespace(queue_name="note", migration_id=1)
    steps = StepClock()
    return BatchContext(queue, batch, nothing, connection, migration, nothing, give_up, steps=steps, ledger=ledger)


def test_rows_take_their_turn_before_they_are_updated(table: EntryTable, connection: Connection) -> None:
    limit = Limit(timedelta(0))
    found = rewrite_rows(fake_context(connection, limit), queries_of(table, connection), [move(1), move(2)])
    connection.commit()
    assert (limit.reserved, len(found), forms(table)) == ([2], 2, "iaaii")


@pytest.mark.parametrize("wait", [timedelta(0), timedelta(hours=1)])
def test_a_worker_that_gives_up_waits_for_no_turn(connection: Connection, wait: timedelta) -> None:
    with pytest.raises(BatchReleased):
        wait_for_turn(fake_context(connection, Limit(wait), gives_up=True), 7)


def test_the_wait_for_a_turn_is_counted(connection: Connection) -> None:
    counter = metrics.limit_wait_seconds.labels("max_rows_per_second")
    before = counter._value.get()
    with pytest.raises(BatchReleased):
        wait_for_turn(fake_context(connection, Limit(timedelta(hours=1)), gives_up=True), 7)
    assert counter._value.get() - before == pytest.approx(3600)
