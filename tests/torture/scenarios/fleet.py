"""A thousand kills over four hosts: workers, links, PostgreSQL's connections, the S3 server; an application goes on.

ROWFERRY_KILLS asks for another number.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory

from psycopg.conninfo import make_conninfo

from support.processes import several_hosts
from support.processes.processes import wait_for
from torture.application import Application
from torture.audit_log import AuditLog
from torture.namespace import inside
from torture.run import Run
from torture.scenarios.application import LEGACY, MOST_PASSES, account, repair
from torture.scenarios.database import TERMINATE
from torture.scenarios.hosts import HBA, LIVE, WITHIN, relayed
from torture.scenarios.kills import AT_WORK, PLAN
from torture.workers import WORKER, WorkerPool
from torture.world import World

WHAT = (
    "kills at random moments over four hosts: workers, links, connections of PostgreSQL, the S3 server; beside an "
    "application that inserts, renames, deletes and overwrites"
)

FAULTS = frozenset(
    {"SIGKILL", "links cut", "connections terminated", "S3 servers killed", "rows inserted", "objects overwritten"}
)

WRITES = ("rows inserted", "objects overwritten")
LONGEST = timedelta(hours=2)
KILLS = int(os.environ.get("ROWFERRY_KILLS", "1000"))
HOSTS, SEATS_A_HOST = 4, 2
LONGEST_PAUSE = timedelta(seconds=1)
"""Between two kills lies up to this long, whatever they meet."""
LONGEST_WAIT = timedelta(seconds=10)
"""... until an attempt has begun, and no longer."""
WRITES_EVERY = timedelta(seconds=0.3)
"""So often, at the most, the application does something."""
CUT_FOR = (1.0, 30.0)
"""Seconds that a link is cut: PostgreSQL gives a host up in 15 to 25 s, so some come back to what they still hold."""
MOST_CUT = 2
PASS_WITHIN = timedelta(minutes=10)
BEGUN = "select coalesce(max(id), 0)::int from rowferry.batch_attempt"
UNREACHED = "rowferry: PostgreSQL cannot be reached"
CONFLICTS = "select count(*)::int from rowferry.entry_failure where outcome = 'conflict'"
KINDS: Mapping[str, float] = {
    "worker": 0.45,
    "connection": 0.45,
    "link": 0.06,
    "S3 server": 0.04,
}
"""The share of each kind of kill."""


@dataclass
class Killer:
    """Kills one thing after the other."""

    run: Run
    world: World
    hosts: list[several_hosts.Host]
    pool: WorkerPool
    mend_at: dict[int, float] = field(default_factory=dict[int, float])
    """By the place of a host that is cut off, when its link is mended."""

    def kill(self, kind: str) -> None:
        """Kill one of that kind, if there is one to kill."""
        kills: dict[str, Callable[[], None]] = {
            "worker": self._kill_worker,
            "connection": self._terminate,
            "link": self._cut,
            "S3 server": self._kill_s3,
        }
        kills[kind]()

    def kills(self) -> int:
        """Return how many have come to pass; workers that SIGKILL has ended are counted by their deaths."""
        counted = ("links cut", "connections terminated", "S3 servers killed")
        return len(self.pool.deaths) + sum(self.run.faults[kind] for kind in counted)

    def mend(self, *, everything: bool = False) -> None:
        """Mend the links whose time has come, or all of them."""
        now = time.monotonic()
        for place in [place for place, until in self.mend_at.items() if everything or until <= now]:
            self.hosts[place].mend()
            del self.mend_at[place]

    def _kill_worker(self) -> None:
        at_work = {row["pid"] for row in self.world.query(AT_WORK)}
        self.pool.kill_one(self.run.random, among=at_work if self.run.random.random() < 0.8 else None)

    def _terminate(self) -> None:
        self.run.faults["connections terminated"] += self.world.ask(TERMINATE)

    def _cut(self) -> None:
        if len(self.mend_at) < MOST_CUT:
            place = self.run.random.choice([n for n in range(len(self.hosts)) if n not in self.mend_at])
            self.hosts[place].cut()
            self.mend_at[place] = time.monotonic() + self.run.random.uniform(*CUT_FOR)
            self.run.faults["links cut"] += 1

    def _kill_s3(self) -> None:
        self.world.s3.crash()
        self.run.faults["S3 servers killed"] += 1


def torture(run: Run) -> None:
    """Kill at random while the application writes; once it rests, passes and a repair must make everything agree."""
    if reason := several_hosts.why_not():
        run.skipped.append(reason)
        return
    with (
        several_hosts.network(HOSTS) as (hub, hosts),
        inside(hub),
        TemporaryDirectory(prefix="rowferry-hba-") as folder,
    ):
        hba = Path(folder) / "pg_hba.conf"
        Path(folder).chmod(0o755)
        hba.write_text(HBA)
        settings = {"listen_addresses": "*", "hba_file": str(hba)}
        with run.world(settings=settings, plan=PLAN) as world, relayed(world) as relay:
            world.migration.reach_through(relay.endpoint_url)
            world.environment["DATABASE_URL"] = make_conninfo(world.migration.dsn, host=several_hosts.HUB_ADDRESS)
            migrate_under_kills(run, world, hosts)


def migrate_under_kills(run: Run, world: World, hosts: list[several_hosts.Host]) -> None:
    """Let workers migrate under kills and the application's writes, and see that all adds up in the end."""
    kills, entries, seats = (16, 300, HOSTS) if run.short else (KILLS, 3000, HOSTS * SEATS_A_HOST)
    audit_log = AuditLog(world)
    world.fill(entries, large=entries // 100)
    world.enqueue()
    with world.workers(seats, command=lambda seat: hosts[seat % HOSTS].command(*WORKER, "--parallel=8")) as pool:
        wait_for(lambda: world.ask(LIVE) == HOSTS, deadline=WITHIN)
        killer = Killer(run, world, hosts, pool)
        with Application(world, world.oracle, run.random.randrange(2**32), WRITES_EVERY) as application:
            kill_at_random(killer, application, kills, entries // 6)
        killer.mend(everything=True)
        if application.fault is not None:
            raise application.fault
        run.faults.update(application.done)
        make_passes(run, world)
        wait_for(lambda: world.ask(LIVE) == HOSTS, deadline=WITHIN)
        assert pool.stop() == [0] * seats
        count_deaths(run, world, pool)
    verified = repair(run, world)
    account(world, application, audit_log, verified)


def make_passes(run: Run, world: World) -> None:
    """Enqueue until a pass finds no legacy row any more, and decide what workers leave to an operator.

    Where a worker was killed between a copy and its row, and the application then replaced the legacy object, a
    different object is at the production key: a conflict, which is decided for the legacy one. An object that was
    deleted with its row is missing, until the batch is tried again and finds no row either.
    """
    for _ in range(MOST_PASSES):
        world.enqueue()
        world.wait_until_done(PASS_WITHIN)
        run.faults["conflicts decided"] += world.ask(CONFLICTS)
        world.rowferry("requeue", "--error-like=different object", "--on-conflict=overwrite")
        world.rowferry("requeue", "--all")
        world.wait_until_done(PASS_WITHIN)
        if not world.ask(LEGACY):
            return
    world.auditor.report(f"after {MOST_PASSES} passes {world.ask(LEGACY)} rows are still legacy")


def count_deaths(run: Run, world: World, pool: WorkerPool) -> None:
    """Count the workers that SIGKILL has ended; what else one may have died of is a violation.

    But for one that lost its connection while it started: it ends with a sentence, to be started again.
    """
    for death in pool.deaths:
        if death.status == -SIGKILL:
            run.faults["SIGKILL"] += 1
        elif death.status > 0 and UNREACHED in pool.log_of(death.seat):
            run.faults["starts without a connection"] += 1
        else:
            world.auditor.report(f"a worker died of something else: {death}: {pool.log_of(death.seat)[-800:]}")


def kill_at_random(killer: Killer, application: Application, kills: int, more: int) -> None:
    """Kill until so many kills have come to pass, each promised kind among them; see that there is work."""
    run, world = killer.run, killer.world
    owed = [*KINDS]
    while (seen := killer.kills()) < kills or owed or not all(application.done[kind] for kind in WRITES):
        if application.fault is not None:
            return
        if world.waiting() < 2 * HOSTS:
            world.fill(more)
            world.enqueue()
        killer.mend()
        kind = owed.pop() if owed and seen > kills // 2 else run.random.choices([*KINDS], [*KINDS.values()])[0]
        killer.kill(kind)
        run.say(f"{seen} of {kills} kills; {world.waiting()} batches wait")
        time.sleep(run.random.uniform(0, LONGEST_PAUSE.total_seconds()))
        wait_for_attempt(world)


def wait_for_attempt(world: World) -> None:
    """Wait until workers have begun something since, so that a slow machine is not killed at its starts alone."""
    began, give_up_at = world.ask(BEGUN), time.monotonic() + LONGEST_WAIT.total_seconds()
    while world.ask(BEGUN) == began and time.monotonic() < give_up_at:
        time.sleep(0.1)
