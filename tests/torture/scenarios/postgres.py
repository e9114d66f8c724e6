"""PostgreSQL is restarted, ends sessions, gives workers too few connections, or has an index that hides rows."""

import os
import signal
import time
from contextlib import ExitStack
from datetime import timedelta
from typing import ClassVar
from unittest.mock import patch

from psycopg import sql

from support.entries.entry_table import FROM
from support.postgres.ordinary import administrator
from support.postgres.roles import grant, log_in, new_role
from torture.final_checks import Expected
from torture.scenarios.kinds import Killed
from torture.scenarios.scenario import Scenario, Size
from torture.world import World

SUM = "select sum(entry_count)::int from rowferry.batch_queue"
LEGACY = f"select count(*)::int from public.avatars where path like '{FROM}%%'"

LIMIT = "alter role {} connection limit {}"
END = "select count(pg_terminate_backend(pid))::int from pg_stat_activity where usename = %s"
UPGRADES = (
    "update pg_collation set collversion = '0' where collname = 'pg_c_utf8'",
    "update pg_index set indoption = '3' where indexrelid = 'public.avatars_pkey'::regclass",
)
"""As after an upgrade of the system: texts sort otherwise (here in the opposite order) than when the index was made."""


class FewConnections(Scenario):
    what = "four workers whose role may have three connections at times, and five at others: rows go on moving"
    faults = frozenset({"refused connections", "terminated sessions"})
    short, long = Size(2, 200), Size(10, 800)
    limits = 3, 5
    refused = "too many connections for role"
    loses_database = True

    def build(self, until: ExitStack) -> World:
        """Let workers log in as a role of their own, whose connections are counted."""
        world = super().build(until)
        world.migration.write_plan()
        self.role = until.enter_context(new_role(world.migration.dsn, f"connection limit {max(self.limits)}"))
        with patch.dict(os.environ, world.migration.environment):
            grant(world.migration, {"worker": self.role})
        world.environment["DATABASE_URL"] = log_in(world.migration, self.role)
        return world

    def cause(self) -> None:
        for number in range(self.times):
            for limit in self.limits:
                self.limit(limit)
                self.wait_for_progress()
            self.say(f"{number + 1} of {self.times}")

    def limit(self, connections: int) -> None:
        """Let the role have so many connections from now on, and end those that it has."""
        with administrator(self.world.migration.dsn) as superuser:
            superuser.execute(sql.SQL(LIMIT).format(sql.Identifier(self.role), connections))
            (ended,) = superuser.execute(END, [self.role]).fetchone() or (0,)
        self.count("terminated sessions", ended)

    def end(self) -> None:
        """End with a connection for each worker, without which it could not sign off."""
        self.limit(4 * self.seats)
        self.end_killed()
        self.count("refused connections", self.pool.logs().count(self.refused))


class BrokenOrder(Killed):
    what = "ids are sorted otherwise than when their index was made, with workers killed: `migrate` says so, and ends"
    faults = frozenset({"SIGKILL", "rows that their index hides"})
    settings: ClassVar = {"enable_seqscan": "off", "enable_bitmapscan": "off"}
    typed = "alter table public.avatars alter id type text collate pg_c_utf8"
    rebuilt = "reindex table public.avatars"

    def build(self, until: ExitStack) -> World:
        world = super().build(until)
        world.migration.execute(self.typed)
        return world

    def fill(self) -> None:
        self.world.fill(self.entries, large=0)
        with administrator(self.world.migration.dsn) as superuser:
            for statement in UPGRADES:
                superuser.execute(statement)
        self.world.enqueue(self.batch)

    def keep_going(self) -> None:
        """Add nothing."""

    def cause(self) -> None:
        super().cause()
        options = "--yes", "--no-objects", "--processes=1", f"--batch-size={self.batch}"
        said = self.world.rowferry("migrate", *options, statuses=(1,))
        self.count("rows that their index hides", self.world.ask(LEGACY))
        if "pg_c_utf8 was made by collation version 0" not in " ".join(said.split()):
            self.report(f"the reason is not named: {said[-800:]}")
        self.world.migration.execute(self.rebuilt)
        self.world.enqueue(self.batch)

    def expect(self) -> Expected:
        return Expected(sum_of_entries=self.world.ask(SUM))


SHUTDOWNS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
LIVE = "select count(*)::int from rowferry.live_workers"
TERMINATE = """
select count(*) filter (where pg_terminate_backend(pid, 5000))::int from (
    select pid from pg_stat_activity where application_name like 'rowferry %' order by random() limit 1
) as victim
"""
"""Counts a backend once it has ended."""


def restart(scenario: Scenario, number: int) -> None:
    """Restart PostgreSQL, fast and immediately in turn; what counts is the request that it has noted down."""
    mode = [*SHUTDOWNS][number % 2]
    postgres, words = scenario.world.postgres, f"received {mode} shutdown request"
    before = scenario.world.server_log().count(words)
    postgres.restart(SHUTDOWNS[mode])
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
