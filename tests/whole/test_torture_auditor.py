"""What the auditor of `make torture` sees, what it says when it was blind, and whom it never accuses."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from threading import Thread
from typing import LiteralString

import psycopg
import pytest

from support.processes.processes import wait_for
from torture.application import Application
from torture.builder import make_world
from torture.seeded_faults import ENTRIES, SEEDED_FAULTS
from torture.world import World, key_of

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("torture"), pytest.mark.soak]

WAITS = "select pid from pg_stat_activity where application_name = 'application' and wait_event_type = 'Lock'"


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


def has_violation(world: World, words: str) -> bool:
    return any(found.startswith(words) for found in world.auditor.violations)
