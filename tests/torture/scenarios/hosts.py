"""Workers on four hosts: one is cut off in the middle of a batch, or everything is killed at random."""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from psycopg.conninfo import make_conninfo

from support.processes import several_hosts
from support.processes.processes import wait_for
from support.processes.several_hosts import inside
from torture.bad_s3 import BadS3
from torture.scenarios.application import Applications
from torture.scenarios.kinds import Kills
from torture.scenarios.postgres import TERMINATE
from torture.scenarios.scenario import Scenario, Size
from torture.workers import WORKER, Command
from torture.world import World

HOSTS = 4
HBA = "local all all scram-sha-256\nhost all all all scram-sha-256\n"
OF_HOST = "rowferry.batch_queue as q join rowferry.worker as w on q.worker_id = w.id"
HELD = """
select q.id from rowferry.batch_queue as q
join rowferry.batch_attempt as a on a.batch_id = q.id and a.finished_at is null
join rowferry.worker as w on a.worker_id = w.id
where w.host = %s and q.status = 'INIT'
"""
LEFT = "select count(*)::int from rowferry.batch_queue where id = any(%s) and status = 'INIT'"
SPOILT = f"select count(*)::int from {OF_HOST} where q.id = any(%s) and (q.status <> 'DONE' or w.host = %s)"
FINISHED_BY = f"select count(*)::int from {OF_HOST} where w.host = %s and q.finished_at > %s"
TAKEN = f"select count(*)::int from {OF_HOST} where w.host <> %s and q.id = any(%s) and q.status = 'DONE'"
"""Of the batches that a host held, those that PostgreSQL took from it: another host has finished them."""
SHARES = f"select w.host, count(*)::int as batches from {OF_HOST} group by 1 order by 1"
SLOWEST = "s at the longest until its batches were done elsewhere"
LIVE = "select count(distinct host)::int from rowferry.live_workers"


class OnHosts(Scenario):
    """Workers on hosts of their own, which are network namespaces."""

    batch = 25

    def why_not(self) -> str | None:
        return several_hosts.why_not()

    def build(self, until: ExitStack) -> World:
        hub, self.hosts = until.enter_context(several_hosts.network(HOSTS))
        until.enter_context(inside(hub))
        hba = Path(until.enter_context(TemporaryDirectory(prefix="rowferry-hba-"))) / "pg_hba.conf"
        hba.parent.chmod(0o755)
        hba.write_text(HBA)
        settings = {"listen_addresses": "*", "hba_file": str(hba)}
        world = until.enter_context(self.run.world(settings=settings, plan=self.plan))
        # S3 is relayed as it is: what matters is that PostgreSQL itself cannot reach the host.
        relay = BadS3(world.s3.endpoint_url, 0, {}, host=several_hosts.HUB_ADDRESS)
        world.migration.reach_through(until.enter_context(relay.running()).endpoint_url)
        world.environment["DATABASE_URL"] = make_conninfo(world.migration.dsn, host=several_hosts.HUB_ADDRESS)
        return world

    def find_command(self) -> Command:
        return lambda seat: self.hosts[seat % HOSTS].command(*WORKER, *self.arguments)

    def wait_for_hosts(self) -> None:
        self.wait_for(lambda: self.world.ask(LIVE) == HOSTS)


class Hosts(OnHosts):
    what = (
        "four hosts as network namespaces; one loses every packet, both ways, in the middle of a batch, and comes back"
    )
    faults = frozenset({"hosts cut off", "batches claimed then"})
    within = timedelta(seconds=120)
    short, long = Size(1, 600), Size(HOSTS, 600)
    done_within = timedelta(seconds=60)
    """Until another host has finished the batch. PostgreSQL frees it in 15 to 25 s; a busy machine is slower."""

    def cause(self) -> None:
        """Cut off one host after the other."""
        self.wait_for_hosts()
        for victim in self.hosts[: self.times]:
            held, began = self.cut(victim), time.monotonic()
            wait_for(lambda held=held: self.world.ask(LEFT, held) == 0, deadline=self.done_within)
            seconds = round(time.monotonic() - began)
            self.say(f"{victim.name}: its {len(held)} batches done elsewhere after {seconds} s")
            self.run.faults[SLOWEST] = max(self.run.faults[SLOWEST], seconds)
            self.wait_for(lambda: self.world.ask(LIVE) == HOSTS - 1)
            victim.mend()
            self.see_return(victim, held)
            taken = self.world.ask(TAKEN, victim.name, held)
            self.count("batches claimed then", taken)
            self.count("hosts cut off", taken > 0)

    def cut(self, victim: several_hosts.Host) -> list[int]:
        """Cut a host off while it holds batches, and return which."""
        give_up_at = time.monotonic() + self.within.total_seconds()
        while time.monotonic() < give_up_at:
            self.keep_busy(4 * HOSTS, 400, large=1)
            self.wait_for(lambda: self.world.query(HELD, victim.name))
            victim.cut()
            time.sleep(0.5)  # what was on its way before the cut is settled
            if held := [row["id"] for row in self.world.query(HELD, victim.name)]:
                return held
            victim.mend()
        raise AssertionError(f"{victim.name} was never caught with a claimed batch")

    def see_return(self, victim: several_hosts.Host, held: list[int]) -> None:
        """See that the host commits nothing of its claimed batches, and goes on working."""
        now = self.world.ask("select clock_timestamp()")

        def has_gone_on() -> bool:
            self.keep_busy(4 * HOSTS, 400, large=1)
            return self.world.ask(FINISHED_BY, victim.name, now) > 0

        self.wait_for(has_gone_on)
        if spoilt := self.world.ask(SPOILT, held, victim.name):
            self.report(f"{spoilt} batches that {victim.name} had lost bear its name")

    def check(self) -> None:
        """See that every host has had its share of the queue."""
        shares = {row["host"]: row["batches"] for row in self.world.query(SHARES)}
        self.run.figures.append(f"batches by host: {', '.join(f'{host} {share}' for host, share in shares.items())}")
        if len(shares) < HOSTS:
            self.report(f"of {HOSTS} hosts only {', '.join(shares)} have finished batches")
        super().check()


LONGEST_PAUSE_SECONDS = 1.0
"""Between two kills lies up to this long, whatever they meet."""
LONGEST_WAIT = timedelta(seconds=10)
"""... until an attempt has begun, and no longer."""
CUT_FOR = (1.0, 30.0)
"""Seconds that a link is cut: PostgreSQL gives a host up in 15 to 25 s, so some come back to what they still hold."""
MOST_CUT = 2
BEGUN = "select coalesce(max(id), 0)::int from rowferry.batch_attempt"
CONFLICTS = "select count(*)::int from rowferry.entry_failure where outcome = 'conflict'"
KINDS: Mapping[str, float] = {
    "SIGKILL": 0.45,
    "connections terminated": 0.45,
    "links cut": 0.06,
    "S3 servers killed": 0.04,
}
"""The share of each kind of kill."""


class ThousandKills(OnHosts, Applications):
    """ROWFERRY_KILLS asks for another number than a thousand."""

    what = (
        "kills at random moments over four hosts: workers, links, connections of PostgreSQL, the S3 server; beside an "
        "application that inserts, renames, deletes and overwrites"
    )
    faults = frozenset({*KINDS, "rows inserted", "objects overwritten"})
    longest = timedelta(hours=2)
    within = timedelta(minutes=10)
    short = Size(16, 300, seats=HOSTS)
    long = Size(int(os.environ.get("ROWFERRY_KILLS", "1000")), 3000, seats=2 * HOSTS)
    large = None
    plan = Kills.plan
    loses_database = True
    writes_every = timedelta(seconds=0.3)

    def fill(self) -> None:
        self.mend_at: dict[several_hosts.Host, float] = {}
        super().fill()

    def go_on(self) -> None:
        """Kill until so many kills have come to pass, each kind among them, and the application has written."""
        self.wait_for_hosts()
        owed = [*KINDS]
        while (seen := self.count_kills()) < self.times or owed or not self.has_written():
            if self.application.fault is not None:
                return
            self.keep_busy(2 * HOSTS, self.entries // 6, large=1)
            self.mend()
            is_owed = owed and seen > self.times // 2
            self.kill(owed.pop() if is_owed else self.run.random.choices([*KINDS], [*KINDS.values()])[0])
            self.say(f"{seen} of {self.times} kills; {self.world.waiting()} batches wait")
            self.pause(LONGEST_PAUSE_SECONDS)
            self.wait_for_attempt()

    def count_kills(self) -> int:
        """Return how many have come to pass; workers that SIGKILL has ended are counted by their deaths."""
        return len(self.pool.deaths) + sum(self.run.faults[kind] for kind in KINDS)

    def kill(self, kind: str) -> None:
        """Kill one of that kind, if there is one to kill."""
        match kind:
            case "SIGKILL":
                self.kill_worker()  # counted by their deaths
            case "connections terminated":
                self.count(kind, self.world.ask(TERMINATE))
            case "links cut" if len(self.mend_at) < MOST_CUT:
                host = self.run.random.choice([host for host in self.hosts if host not in self.mend_at])
                host.cut()
                self.mend_at[host] = time.monotonic() + self.run.random.uniform(*CUT_FOR)
                self.count(kind)
            case "S3 servers killed":
                self.world.s3.restart(signal.SIGKILL)
                self.count(kind)
            case _:
                pass

    def mend(self, *, everything: bool = False) -> None:
        """Mend the links whose time has come, or all of them."""
        for host in [host for host, at in self.mend_at.items() if everything or at <= time.monotonic()]:
            host.mend()
            del self.mend_at[host]

    def wait_for_attempt(self) -> None:
        """Wait until workers have begun something since, so that a slow machine is not killed at its starts alone."""
        began, give_up_at = self.world.ask(BEGUN), time.monotonic() + LONGEST_WAIT.total_seconds()
        while self.world.ask(BEGUN) == began and time.monotonic() < give_up_at:
            time.sleep(0.1)

    def rest(self) -> None:
        self.mend(everything=True)

    def decide(self) -> None:
        """Decide conflicts for the legacy object.

        Where a worker was killed between a copy and its row, and the application then replaced the legacy object, a
        different object is at the production key.
        """
        self.count("conflicts decided", self.world.ask(CONFLICTS))
        self.world.rowferry("requeue", "--error-like=different object", "--on-conflict=overwrite")

    def end(self) -> None:
        self.wait_for_hosts()
        self.end_killed()
