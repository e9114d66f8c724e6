"""A whole switch-over, as docs/application.md tells it, with two versions of the application running."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from itertools import cycle
from signal import SIGINT, SIGKILL
from threading import Event
from typing import ClassVar

from support.entries.entry_table import FROM, TO
from support.processes.processes import meanwhile
from torture.final_checks import Expected, check_attempts, check_locks, check_uploads
from torture.scenarios.scenario import WORKERS, Scenario, Size
from torture.switching.command import FINISHING, STAGES, CutoverEnd, cut_over
from torture.switching.history import Entry, Histories, Table
from torture.switching.instance import INSERTS, ROLLED_BACK, Instance, keys_of
from torture.switching.version_auditor import VersionAuditor, look_at_the_end
from torture.switching.wrong_clock import WrongClock
from torture.world import World

INTERRUPTED, SHIFTED = "interruptions of cutover", "responses with a wrong clock"
SKEW = timedelta(seconds=5)
KILL_EVERY = timedelta(seconds=5)
FLIP_WITHIN = timedelta(seconds=3)
"""All instances begin to run the new version within this time."""
HEALING = 3
"""So often entries are requeued and `--finish` is run again when it has left some, as it asks for."""
TABLES = """
create table public.pictures (id bigint primary key, path text);
create table public.files (id bigint primary key, path text, updated_at timestamptz);
"""
MOVE = {"table": "public.pictures", "id": "id", "key": "path", "from": FROM, "to": TO}
STAY = {**MOVE, "table": "public.files", "from": "", "to": "", "rows": "stay", "changed": "updated_at"}
KEYS: dict[Table, str] = {"pictures": FROM + "p{}.png", "files": "f/{}.bin"}


class Switch(Scenario):
    what = "a switch-over with two versions of an application, clocks 5 s apart, cutover interrupted at every stage"
    faults = frozenset(
        {
            *("SIGKILL", INTERRUPTED, SHIFTED, ROLLED_BACK, "uploads", "rows and objects deleted"),
            *("objects replaced by the old version", "objects replaced by the new version"),
        }
    )
    forms = ("ahead", "behind")
    short, long = Size(3, 150, seats=3), Size(20, 400, seats=3)
    """Seconds that a transaction of the application stays open at most, and entries of each of its tables."""
    longest = timedelta(minutes=60)
    within = timedelta(seconds=120)
    plan: ClassVar = {"migration": {"max_attempts": 50}}

    def choose_forms(self) -> Sequence[str]:
        return [self.run.random.choice(self.forms)] if self.run.short else self.forms

    def build(self, until: ExitStack) -> World:
        """Let the clock of production be off."""
        world = super().build(until)
        clock = WrongClock(world.s3.endpoint_url, SKEW if self.form == "ahead" else -SKEW)
        self.production = until.enter_context(clock.running())
        world.migration.plan["production"]["endpoint_url"] = self.production.endpoint_url
        self.watch = until.enter_context(ExitStack())
        return world

    def fill(self) -> None:
        """Add rows of both kinds with their objects, and some that nothing touches but rowferry, one of them large."""
        self.histories, migration = Histories(), self.world.migration
        self.world.fill(self.entries // 2)
        migration.execute(TABLES)
        migration.plan["entries"] += [MOVE, STAY]
        for table, pattern in KEYS.items():
            for number in range(1, self.entries + 1):
                entry: Entry = (table, number)
                key, body = pattern.format(number), self.world.random.randbytes(200 + number)
                self.histories.begin(entry, body, keys_of(table, key))
                migration.legacy.put(key, body)
                migration.execute(INSERTS[table], (number, key))
                self.histories.acknowledge(entry, body, is_legacy=True)
        migration.write_plan()

    def cause(self) -> None:
        seeds = [self.run.random.randrange(2**32) for _ in range(5)]
        longest = timedelta(seconds=self.times)
        self.instances = [Instance(self.world, self.histories, seed, longest) for seed in seeds[1:]]
        self.auditor = VersionAuditor(self.world, self.histories, seeds[0])
        self.watch.enter_context(self.auditor.watching())
        with meanwhile(self.kill):
            self.drive(longest)
            self.world.wait_until_done()

    def drive(self, longest: timedelta) -> None:
        """Start the application, switch it and end it; what `--finish` names then, the next one heals."""
        for instance in self.instances:
            instance.start()
        self.interrupt()
        self.require(cut_over(self.world))
        self.flip()
        self.interrupt("--finish")
        ended = self.require(cut_over(self.world, "--finish"))
        for instance in self.instances:
            instance.end(within=2 * longest)
        for _ in range(HEALING):
            if ended.status:
                self.world.rowferry("requeue", "--all")
                ended = self.require(cut_over(self.world, "--finish"))

    def interrupt(self, *arguments: str) -> None:
        """Interrupt `cutover` at each stage, in the short form at some; by a signal that it hears, or by SIGKILL."""
        signals, short = cycle(self.run.random.sample((SIGINT, SIGKILL), 2)), self.run.short
        for words, stage in list((FINISHING if arguments else STAGES).items())[short :: 1 + short]:
            self.say(f"cutover is interrupted {words}")
            ended = cut_over(self.world, *arguments, stage=stage, number=next(signals))
            self.count(INTERRUPTED, ended.was_interrupted)

    def require(self, ended: CutoverEnd) -> CutoverEnd:
        """Report a cutover that ended otherwise than well, or with entries that are left."""
        if ended.status not in {0, 1}:
            self.report(f"cutover ended with {ended.status}: {ended.said}{ended.complained[-800:]}")
        return ended

    def flip(self) -> None:
        """Let all instances run the new version, each at its own moment; return when no old one runs any more."""
        self.say("the application is switched")
        self.auditor.versions = ("old", "new")
        for instance in self.instances:
            instance.flip.set()
            time.sleep(FLIP_WITHIN.total_seconds() / len(self.instances))
        self.wait_for(lambda: all(instance.has_flipped or instance.fault for instance in self.instances))
        self.auditor.versions = ("new",)

    def kill(self, ended: Event) -> None:
        """Kill a worker every KILL_EVERY, but none that is still starting."""
        while not ended.wait(KILL_EVERY.total_seconds()):
            self.pool.kill_one(self.run.random, among={row["pid"] for row in self.world.query(WORKERS)})

    def end(self) -> None:
        self.end_killed()
        self.watch.close()

    def check(self) -> None:
        """Hold all objects against what the application has last written, and count what was done."""
        self.count(SHIFTED, self.production.responses)
        for instance in self.instances:
            self.run.faults.update(instance.done)
            if instance.fault is not None:
                raise instance.fault
        for version in ("old", "new"):
            if not self.auditor.reads[version]:
                self.report(f"nothing was read by the {version} version")
        self.run.audits += self.auditor.reads.total()
        orphans = {key for instance in self.instances for key in instance.orphans}
        for words in look_at_the_end(self.world, self.auditor, self.histories, orphans, self.run.faults):
            self.report(words)
        for check in (check_uploads, check_locks, check_attempts):
            for words in check(self.world, Expected()):
                self.report(words)
