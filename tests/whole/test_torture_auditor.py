"""What the auditor of `make torture` sees, what it says when it was blind, and whom it never accuses."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from threading import Thread
from types import SimpleNamespace
from typing import LiteralString

import psycopg
import pytest

from support.processes.processes import wait_for
from torture import coverage
from torture.application import Application
from torture.audit_log import AuditLog
from torture.auditor import Auditor
from torture.builder import make_world
from torture.coverage import Coverage
from torture.seeded_faults import ENTRIES, SEEDED_FAULTS
from torture.world import World, key_of

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("torture"), pytest.mark.soak]

WAITS = "select pid from pg_stat_activity where application_name = 'application' and wait_event_type = 'Lock'"
COUNT_A_MOVE = "update rowferry.batch_queue set migrated = migrated + 1, entry_count = entry_count + 1 returning id"
MAKE_A_CHANGE_UP = "update rowferry.batch_queue set migrated = migrated - 1, changed = changed + 1 returning id"
COUNT_NO_CHANGE = "update rowferry.batch_queue set changed = 0, entry_count = entry_count - 1 returning id"
MOVE_BACK = "update public.avatars set path = 'image/back.png' where id = 1"


def test_the_auditor_sees_at_once_and_says_when_it_cannot() -> None:
    with make_world(seed=1) as world:
        world.fill(ENTRIES)
        world.enqueue(ENTRIES)
        world.rowferry("worker", "--until-empty")
        seen = world.auditor.audits
        wait_for(lambda: world.auditor.audits > seen + 2 * ENTRIES)
        assert world.auditor.violations == []
        for fault in ("a row that names nothing", "a row with another's object", "a spoilt object", "a lost object"):
            SEEDED_FAULTS[fault].seed(world)
            wait_for(partial(has_violation, world, SEEDED_FAULTS[fault].violation))
        world.migration.execute("alter table public.avatars rename to elsewhere")
        wait_for(partial(has_violation, world, "the auditor itself failed"))


def test_a_thread_of_the_auditor_that_ends_early_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Auditor._guard
    monkeypatch.setattr(
        Auditor, "_guard", lambda self, look, one: None if one.name == "sweeps" else guard(self, look, one)
    )
    with make_world(seed=1) as world:
        world.fill(3, large=0)
        wait_for(lambda: world.auditor.audits >= 3)
        world.auditor.end()
        assert world.auditor.violations == [
            "the auditor was blind: the thread that sweeps had ended before its time",
            "the auditor was blind: the thread that sweeps made no audit",
        ]
        assert world.auditor.count == 2


def test_an_auditor_that_looks_at_nothing_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Auditor, "_check_many", lambda *_: None)
    with make_world(seed=1) as world:
        world.fill(3, large=0)
        world.enqueue()
        with world.workers(1) as pool:
            world.wait_until_done()
            pool.stop()
        world.auditor.end()
        assert world.auditor.violations == [
            "the auditor was blind: no audit while workers ran",
            "the auditor was blind: the thread that follows changes made no audit",
            "the auditor was blind: the thread that sweeps made no audit",
        ]


@pytest.mark.parametrize(("looks_at", "blind"), [([1, 2, 4], 6), ([1, 3, 9], 6), ([1, 5, 8], 0), ([2, 4, 6, 8], 0)])
def test_who_saw_nothing_most_of_the_time_was_blind(
    looks_at: list[float], blind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it within 10 s."""
    clock = iter([0, *looks_at, 10, 10])
    monkeypatch.setattr(coverage, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    one = Coverage("looks")
    for _ in looks_at:
        one.audit()
    expected = [f"the auditor was blind: the thread that looks saw nothing for {blind} s of 10"] if blind else []
    assert list(one.faults(living=True, rows=1)) == expected


class Hasty(Application):
    """It says that nothing is right any more before it has changed a row, which an auditor must take for a fault."""

    def _change(self, statement: LiteralString, *parameters: object) -> None:
        self._oracle.forget(parameters[-1])
        super()._change(statement, *parameters)


@pytest.mark.parametrize(("kind", "accused"), [(Application, False), (Hasty, True)])
def test_whoever_waits_for_a_row_is_accused_only_if_it_was_hasty(kind: type[Application], *, accused: bool) -> None:
    """A worker holds the row for as long as it commits: the application's DELETE or UPDATE waits, the auditor looks."""
    with make_world(seed=1) as world:
        world.fill(2, large=0)
        application = kind(world, world.oracle, seed=1)
        with closing(application._connection):
            for row_id, act in ((1, application._delete), (2, application._rename)):
                application.keys = {row_id: key_of(row_id)}
                audit_while_it_waits(world, row_id, act)
                assert accused == has_violation(world, f"row {row_id} names an object of ")
        assert [row["id"] for row in world.query("select id from public.avatars")] == [2]
        assert world.oracle.ids() == {"2"}
        before = world.auditor.count
        world.auditor.check_all()
        assert world.auditor.count == before
        assert accused == bool(before)


def audit_while_it_waits(world: World, row_id: int, act: Callable[[], None]) -> None:
    """Let the application act on a row that another session holds; audit meanwhile, and afterwards."""
    thread = Thread(target=act)
    with psycopg.connect(world.migration.dsn) as holder:
        holder.execute("select from public.avatars where id = %s for update", [row_id])
        thread.start()
        wait_for(lambda: world.query(WAITS))
        world.auditor.check_all()
        holder.rollback()
    thread.join(60)
    assert not thread.is_alive()
    world.auditor.check_all()


def test_the_audit_log_shows_what_the_queue_gets_wrong() -> None:
    with make_world(seed=1) as world:
        audit_log = AuditLog(world)
        world.fill(ENTRIES)
        world.enqueue(ENTRIES)
        world.rowferry("worker", "--until-empty")
        assert audit_log.moves == ENTRIES
        assert list(audit_log.differences({"rows inserted": 0})) == []
        world.query(COUNT_A_MOVE)
        assert list(audit_log.differences({})) == [
            f"the queue tells of {ENTRIES + 1} rows that were moved, the table of {ENTRIES}"
        ]
        world.query(MAKE_A_CHANGE_UP)
        assert list(audit_log.differences({})) == [
            "the queue tells of 1 rows that were changed or deleted, the table of 0"
        ]
        world.query(COUNT_NO_CHANGE)
        with psycopg.connect(world.migration.dsn, application_name="rowferry worker planted") as planted:
            planted.execute(MOVE_BACK)
        assert list(audit_log.differences({"rows deleted": 1})) == [
            "workers did something else to a row, 1 times",
            "the application tells of 1 rows deleted, the table of 0",
        ]


def has_violation(world: World, words: str) -> bool:
    return any(found.startswith(words) for found in world.auditor.violations)
