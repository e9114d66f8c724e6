"""What scenarios have in common: a migration under a fault. A row of the table says which, of what, what is right."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from signal import SIGKILL
from typing import Any, ClassVar, NamedTuple

from support.processes.processes import wait_for
from support.s3.proxy import Proxy
from support.s3.servers.own import NotInstalled
from torture.final_checks import Expected
from torture.run import Run
from torture.workers import Command, WorkerPool
from torture.world import World

COPY_METHODS = ("server", "stream")
UNREACHED = "rowferry: PostgreSQL cannot be reached"
DONE = "select count(*)::int from rowferry.batch_queue where status = 'DONE'"
WORKERS = "select pid from rowferry.worker"
AT_WORK = """
select w.pid from rowferry.worker as w
where exists (select from rowferry.batch_attempt as a where a.worker_id = w.id and a.verdict is null)
"""
HURRY = """
with resting as (
    select id from rowferry.batch_queue where status = 'INIT' and run_after > now() for update skip locked
)
update rowferry.batch_queue as q set run_after = now() from resting as r where q.id = r.id returning q.id
"""


class Size(NamedTuple):
    """How often a fault is caused, and over what."""

    times: int
    entries: int
    seats: int = 4


class Scenario:
    """One form after the other: build a world, fill it, cause the fault while workers migrate, and make the account."""

    what: ClassVar[str]
    faults: ClassVar[frozenset[str]]
    """Kinds of faults of which every run sees one at least, in the short form and on a slow machine too."""
    short: ClassVar[Size]
    long: ClassVar[Size]
    longest: ClassVar[timedelta] = timedelta(minutes=20)
    """How long a run may take on a busy machine."""
    within: ClassVar[timedelta] = timedelta(seconds=300)
    """How long anything may take that is waited for; until all is done, it may be more."""
    forms: ClassVar[Sequence[str]] = ("",)
    short_forms: ClassVar[int | None] = None
    """So many forms, from the first on, are the short form's; None: all."""
    batch: ClassVar[int] = 20
    large: ClassVar[int | None] = 2
    """How many objects are copied part by part; None: one in a hundred."""
    arguments: ClassVar[Sequence[str]] = ("--parallel=8",)
    plan: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    settings: ClassVar[Mapping[str, str]] = {}
    loses_database: ClassVar[bool] = False
    """Whether a worker may start while PostgreSQL is away: it ends with a sentence, and is started again."""

    world: World
    pool: WorkerPool

    def __init__(self, run: Run) -> None:
        self.run, self.form = run, ""
        self.times, self.entries, self.seats = self.short if run.short else self.long

    # The story

    def torture(self) -> None:
        if reason := self.why_not():
            self.run.skipped.append(reason)
            return
        for form in self.choose_forms():
            self.form = form
            try:
                self.torture_form()
            except NotInstalled as reason:
                self.run.skipped.append(str(reason))
                return

    def torture_form(self) -> None:
        with ExitStack() as until:
            self.world = self.build(until)
            self.fill()
            with self.world.workers(self.seats, *self.arguments, command=self.find_command()) as self.pool:
                self.cause()
                self.say("waiting for the rest")
                self.world.wait_until_done(max(self.within, Scenario.within))
                self.end()
            self.check()

    # What a scenario may do otherwise

    def why_not(self) -> str | None:
        """Return why it cannot run here; None when it can."""
        return None

    def choose_forms(self) -> Sequence[str]:
        return self.forms[: self.short_forms] if self.run.short else self.forms

    def build(self, until: ExitStack) -> World:
        """Return a world without entries."""
        world = until.enter_context(self.run.world(plan=self.choose_plan(), settings=self.settings))
        if proxy := self.make_proxy(world):
            world.migration.reach_through(until.enter_context(proxy.running()).endpoint_url)
        return world

    def make_proxy(self, world: World) -> Proxy | None:
        """Return what stands between workers and their S3 server, if anything does."""

    def fill(self) -> None:
        """Make the entries and their batches."""
        self.world.fill(self.entries, large=self.entries // 100 if self.large is None else self.large)
        self.world.enqueue(self.batch)

    def find_command(self) -> Command | None:
        """Return another way to start workers, such as on other hosts."""
        return None

    def cause(self) -> None:
        """Cause the fault while workers run; return when it was seen as often as is wanted."""

    def end(self) -> None:
        """Tell the workers to finish; not one of them may have died."""
        self.world.end_alive(self.pool, self.seats)

    def check(self) -> None:
        """Make the account, with all workers stopped."""
        self.world.run_final_checks(self.expect())

    def expect(self) -> Expected:
        """Return in what the end differs from that of a calm migration."""
        return Expected()

    # What they do it with

    def choose_plan(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the plan of a form, whose last word may be a copy method."""
        method = self.form.rpartition(" ")[2]
        if method not in COPY_METHODS:
            return self.plan
        return {**self.plan, "migration": {**self.plan.get("migration", {}), "transfer": method}}

    def say(self, words: str) -> None:
        self.run.say(f"{self.form}: {words}" if self.form else words)

    def count(self, kind: str, times: int = 1) -> None:
        """Count faults that were seen."""
        self.run.faults[kind] += times

    def report(self, words: str) -> None:
        """Count a violation."""
        self.world.auditor.report(words)

    def pause(self, seconds: float) -> None:
        """Sleep for up to so long, by chance."""
        time.sleep(self.run.random.uniform(0, seconds))

    def wait_for(self, condition: Callable[[], object]) -> None:
        wait_for(condition, deadline=self.within)

    def keep_busy(self, least: int, entries: int = 200, *, large: int = 0) -> None:
        """Add entries where fewer batches wait."""
        if self.world.waiting() < least:
            self.world.fill(entries, large=large)
            self.world.enqueue(self.batch)

    def wait_for_progress(self) -> None:
        """Return once a batch has been finished since, with others waiting."""
        done = self.world.ask(DONE)

        def has_gone_on() -> bool:
            self.keep_busy(4 * self.seats)
            return self.world.ask(DONE) > done

        self.wait_for(has_gone_on)

    def finish(self) -> None:
        """Return when no batch is INIT any more; none rests before its next attempt."""

        def is_done() -> bool:
            self.world.query(HURRY)
            return self.world.waiting() == 0

        self.wait_for(is_done)

    def kill_worker(self, share_at_work: float = 0.8) -> int | None:
        """Kill a worker, which holds a batch so often; return its pid, None when there is none."""
        at_work = {row["pid"] for row in self.world.query(AT_WORK)}
        return self.pool.kill_one(self.run.random, among=at_work if self.run.random.random() < share_at_work else None)

    def end_killed(self) -> None:
        """Tell the workers to finish, count those that SIGKILL has ended, and report what else one has died of."""
        self.wait_for(lambda: {row["pid"] for row in self.world.query(WORKERS)}.issuperset(self.pool.pids))
        assert self.pool.stop() == [0] * self.seats  # each of them hears signals by now
        for death in self.pool.deaths:
            log = self.pool.log_of(death.seat)
            if death.status == -SIGKILL:
                self.count("SIGKILL")
            elif self.loses_database and death.status > 0 and UNREACHED in log:
                self.count("starts without a connection")
            else:
                self.report(f"a worker died of something else: {death}: {log[-800:]}")
