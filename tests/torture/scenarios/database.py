"""PostgreSQL is restarted, and ends sessions, while workers run."""

import time
from datetime import timedelta
from typing import get_args

from rowferry_lab.servers.postgres import StopMode
from torture.scenarios.scenario import Scenario, Size

LIVE = "select count(*)::int from rowferry.live_workers"
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
