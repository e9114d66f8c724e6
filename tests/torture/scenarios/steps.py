"""A worker is killed right after each named step of a batch; another one finishes it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from support.processes.processes import same_packages
from torture.crash_injector import MID_COPY, STEPS
from torture.scenarios.scenario import Scenario, Size
from torture.world import COMMAND_DEADLINE

ENTRIES = 8
STATE = """
select
    (select count(*) from public.avatars where path like 'image/%%')::int as legacy_rows,
    (select count(*) from rowferry.batch_attempt where batch_id = q.id and verdict is distinct from 'RELEASED')::int
        as attempts,
    (select count(*) from rowferry.batch_attempt where batch_id = q.id and verdict is null)::int as crashes,
    q.status, q.migrated, q.kept
from rowferry.batch_queue as q where q.id = %s
"""
SESSIONS = "select count(*)::int from pg_stat_activity where application_name like %s"


class Left(NamedTuple):
    """What a death leaves behind, of ENTRIES entries: each number that may be."""

    crashes: tuple[int, ...] = (1,)
    legacy_rows: tuple[int, ...] = (ENTRIES,)
    objects: range = range(ENTRIES, ENTRIES + 1)
    """How many objects stand at their production keys."""


NONE = range(1)
LEFT = {
    "after-claim": Left(crashes=(0,), objects=NONE),
    "after-attempt": Left(objects=NONE),
    "mid-copy": Left(objects=range(MID_COPY, ENTRIES + 1)),
    "after-copy": Left(),
    "in-savepoint": Left(),
    "before-commit": Left(),
    # Whether PostgreSQL reads the COMMIT before it notices the death is its own affair.
    "in-commit": Left(crashes=(0, 1), legacy_rows=(0, ENTRIES)),
    "after-commit": Left(crashes=(0,), legacy_rows=(0,)),
}


class Steps(Scenario):
    what = "SIGKILL right after each named step of a batch"
    faults = frozenset({"SIGKILL"})
    short = long = Size(1, 0, seats=0)
    within = COMMAND_DEADLINE

    def fill(self) -> None:
        """Leave it to each step."""
        assert set(LEFT) == set(STEPS)

    def cause(self) -> None:
        """Kill at each step, look at what is left, and let another worker go on from there."""
        for step in STEPS:
            self.say(step)
            self.kill_at(step)

    def kill_at(self, step: str) -> None:
        """Report whatever is not as LEFT says after the death, and what the next worker does not put right."""
        world, left = self.world, LEFT[step]
        before = len(world.migration.production.listing())
        world.fill(ENTRIES)
        world.enqueue(ENTRIES)
        batch_id = world.ask("select max(id) from rowferry.batch_queue")
        self.die_at(step)
        self.count("SIGKILL")
        (state,) = world.query(STATE, batch_id)
        objects = len(world.migration.production.listing()) - before
        if state["crashes"] not in left.crashes or state["legacy_rows"] not in left.legacy_rows:
            self.report(f"killed {step}: {state}")
        if objects not in left.objects:
            self.report(f"killed {step}: {objects} objects were copied")

        world.rowferry("worker", "--until-empty")
        (after,) = world.query(STATE, batch_id)
        for words in faults_of(state, after, objects):
            self.report(f"killed {step}: {words}: {after}")

    def die_at(self, step: str) -> None:
        """Run a worker that kills itself after the step; AssertionError when it ends otherwise."""
        command = [sys.executable, "-m", "torture.crash_injector", step, "--until-empty", "--max-batches=1"]
        environment = {**same_packages(), **self.world.migration.environment}
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as worker:
            _, words = worker.communicate(timeout=COMMAND_DEADLINE.total_seconds())
        self.world.killed_pids.add(worker.pid)
        self.wait_for(lambda: not self.world.ask(SESSIONS, f"rowferry %:{worker.pid}:%"))
        assert worker.returncode == -signal.SIGKILL, f"{step}: the worker ended with {worker.returncode}:\n{words}"


def faults_of(before: dict[str, int], after: dict[str, int], objects: int) -> Iterator[str]:
    """Yield what the next worker did not do to a batch of which so many objects were copied before."""
    if after["legacy_rows"] or after["status"] != "DONE":
        yield "the batch was not finished"
    if after["attempts"] != before["attempts"] + (before["status"] == "INIT"):
        yield "it did not take one attempt more"
    if after["crashes"] != before["crashes"]:
        yield "crashes were forgotten or made up"
    # What the S3 server had been asked for before the death may have been done after it.
    found_again = after["kept"] >= objects if before["status"] == "INIT" else not after["kept"]
    if not found_again or after["migrated"] + after["kept"] != ENTRIES:
        yield f"{objects} objects were there already"
