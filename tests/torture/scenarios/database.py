"""PostgreSQL is restarted, read-only, ends sessions, or its tables are changed while workers run."""

import time
from contextlib import ExitStack
from datetime import timedelta
from typing import ClassVar, get_args

import psycopg

from rowferry_lab.servers.postgres import StopMode
from support.postgres.ordinary import administrator
from torture.scenarios.scenario import Scenario, Size
from torture.world import World

LIVE = "select count(*)::int from rowferry.live_workers"
IN_HAND = "select count(*)::int from rowferry.batch_attempt where finished_at is null"
TERMINATE = """
select count(*) filter (where pg_terminate_backend(pid, 5000))::int from (
    select pid from pg_stat_activity where application_name like 'rowferry %' order by random() limit 1
) as victim
"""
"""Counts a backend once it has ended."""


def restart(scenario: Scenario, number: int) -> None:
    """Restart PostgreSQL, fast and immediately in turn; what counts is the request that it has noted down."""
    mode: StopMode = get_args(StopMode)[number % 2]
    postgres, words = scenario.world.postgres, f"received {mode} shutdown request"
    before = scenario.world.server_log().count(words)
    postgres.restart(mode)
    scenario.count(f"{mode} restarts", scenario.world.server_log().count(words) - before)


class Database(Scenario):
    what = "PostgreSQL restarted (fast and immediate in turn), backends of workers terminated at random, over 4 workers"
    faults = frozenset({"fast restarts", "immediate restarts", "terminated backends"})
    short, long = Size(2, 400), Size(10, 3000)
    within = timedelta(seconds=60)
    longest_turn_seconds = 6.0
    """Between two restarts lies up to this long."""

    def cause(self) -> None:
        self.wait_for(lambda: self.world.ask(LIVE) == self.seats)
        for number in range(self.times):
            until = time.monotonic() + self.run.random.uniform(1, self.longest_turn_seconds)
            while time.monotonic() < until:
                self.keep_busy(self.seats, 300, large=1)
                self.pause(0.15)
                self.count("terminated backends", self.world.ask(TERMINATE))
            restart(self, number)
            self.say(f"{number + 1} of {self.times} restarts")


class ReadOnly(Scenario):
    what = "the database is read-only for some seconds, again and again, over 4 workers; not one of them ends"
    faults = frozenset({"read-only moments"})
    short, long = Size(2, 200), Size(8, 2000)
    within = timedelta(seconds=90)
    large = 1
    refused = "read-only transaction"
    """What the server's own log says of each write that it refused."""
    troubled = "select count(*)::int from rowferry.batch_queue where status = 'ERROR' or crashes > 0"

    def cause(self) -> None:
        """Forbid new writes on the whole server until a worker was refused, and a little longer."""
        # One that starts without a database that takes writes ends with a sentence, as with a wrong address.
        self.wait_for(lambda: self.world.ask(LIVE) == self.seats)
        for number in range(self.times):
            self.say(f"{number} of {self.times} moments")
            self.wait_for_progress()
            before = self.world.server_log().count(self.refused)
            self.make_read_only("on")
            try:
                self.wait_for(lambda before=before: self.world.server_log().count(self.refused) > before)
                time.sleep(self.run.random.uniform(0.5, 2))
            finally:
                self.make_read_only("off")
            self.count("read-only moments")

    def make_read_only(self, value: str) -> None:
        with administrator(self.world.migration.dsn) as connection:
            connection.execute(f"alter system set default_transaction_read_only = {value}".encode())
            connection.execute("select pg_reload_conf()")

    def check(self) -> None:
        if troubled := self.world.ask(self.troubled):
            self.report(f"{troubled} batches were held to have failed or crashed")
        super().check()


class Sessions(Scenario):
    what = (
        "sessions of workers terminated in the middle of a batch, transaction_timeout far below a batch's time, slow S3"
    )
    faults = frozenset({"sessions terminated in a batch"})
    short, long = Size(5, 120), Size(40, 1000)
    within = timedelta(seconds=90)
    large = 1
    arguments = ("--parallel=8", "--max-batches=1")
    settings: ClassVar = {"transaction_timeout": "2s"}
    """Of the server, for everybody: a batch takes longer, since S3 takes half a second for each request."""
    delay = timedelta(seconds=0.5)
    terminate = """
select h.batch_id
from (
    select a.batch_id, s.pid
    from rowferry.batch_attempt as a
    join pg_stat_activity as s on s.application_name = left('rowferry worker ' || a.worker_id, 63)
    where a.finished_at is null and s.state = 'idle in transaction' and a.batch_id <> all(%s)
    order by random() limit 1
) as h
where pg_terminate_backend(h.pid, 5000)
"""
    """Each batch is struck once: one that is struck again and again would rightly be taken for the reason."""
    crashes = """
select count(*)::int from rowferry.batch_queue where crashes > 0 or error like '%%while it held this batch%%'
"""
    counted = "batch has crashed workers or lost connections before"
    """What a worker logs of a batch that it takes for one with a crash behind it."""

    def build(self, until: ExitStack) -> World:
        world = super().build(until)
        self.s3 = self.slow_s3(until, world)
        return world

    def cause(self) -> None:
        """Terminate one session after the other, each at another batch."""
        self.s3.delay, struck = self.delay, list[int]()

        def strike() -> bool:
            self.keep_busy(2 * self.seats, 100)
            found = self.world.query(self.terminate, struck)
            struck.extend(row["batch_id"] for row in found)
            return bool(found)

        for number in range(self.times):
            self.say(f"{number} of {self.times} sessions")
            self.wait_for(strike)
            self.count("sessions terminated in a batch")
            self.pause(0.5)
        self.s3.delay = timedelta()

    def end(self) -> None:
        super().end()
        if self.counted in self.pool.logs() or self.world.ask(self.crashes):
            self.report("a batch was taken for one that kills workers, and every worker lived")


class Ddl(Sessions):
    what = "ALTER TABLE on the entries' table, with a lock_timeout of 2 s, beside workers whose S3 takes seconds"
    faults = frozenset({"changes of the table beside claimed batches"})
    short, long = Size(6, 120), Size(40, 800)
    batch = 10
    arguments = ("--parallel=8",)
    settings: ClassVar = {}
    delay = timedelta(seconds=3)
    """A claimed batch waits for S3 nearly all the time, and for longer than the application would."""
    changes = ("alter table public.avatars add column extra text", "alter table public.avatars drop column extra")

    def cause(self) -> None:
        """Add a column and drop it again, each time while batches are claimed."""
        self.s3.delay = self.delay
        for number in range(self.times):
            self.say(f"{number} of {self.times} changes")
            self.wait_for(self.is_busy)
            self.change(self.changes[number % 2])
            self.pause(0.5)
        self.s3.delay = timedelta()

    def is_busy(self) -> bool:
        self.keep_busy(2 * self.seats, 60)
        return self.world.ask(IN_HAND) >= self.seats

    def change(self, statement: str) -> None:
        """Change the table; it is a violation if the application gets no lock."""
        with psycopg.connect(self.world.migration.dsn, autocommit=True, options="-c lock_timeout=2s") as connection:
            try:
                connection.execute(statement.encode())
                self.count("changes of the table beside claimed batches")
            except psycopg.errors.LockNotAvailable:
                self.report(f"{statement!r} got no lock within 2 s")
