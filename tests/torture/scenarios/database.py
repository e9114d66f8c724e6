"""PostgreSQL is restarted and backends are terminated while workers run; not one of them dies of it."""

import time
from datetime import timedelta
from typing import get_args

from rowferry_lab.servers.postgres import StopMode
from support.processes.processes import wait_for
from torture.run import Run
from torture.world import World

WHAT = "PostgreSQL restarted (fast and immediate in turn), backends of workers terminated at random, over 4 workers"

FAULTS = frozenset({"fast restarts", "immediate restarts", "terminated backends"})

SEATS = 4
BETWEEN_RESTARTS = timedelta(seconds=6)
BETWEEN_TERMINATIONS = timedelta(seconds=0.15)
"""The most that lies between two faults."""
LIVE_WITHIN = timedelta(seconds=60)
LIVE = "select count(*)::int from rowferry.live_workers"
TERMINATE = """
select count(*) filter (where pg_terminate_backend(pid, 5000))::int from (
    select pid from pg_stat_activity where application_name like 'rowferry %' order by random() limit 1
) as victim
"""
"""Counts a backend once it has ended."""
SHUTDOWN = "received {mode} shutdown request"
"""What the server's own log says of it."""


def torture(run: Run) -> None:
    """Terminate backends all the time, and restart the server under them now and then."""
    restarts, entries = (2, 400) if run.short else (10, 3000)
    with run.world() as world:
        world.fill(entries, large=2)
        world.enqueue(20)
        with world.workers(SEATS, "--parallel=8") as pool:
            wait_for(lambda: world.ask(LIVE) == SEATS, deadline=LIVE_WITHIN)
            for number in range(restarts):
                terminate_backends(run, world)
                restart(run, world, get_args(StopMode)[number % 2])
                run.say(f"{number + 1} of {restarts} restarts, {run.faults['terminated backends']} terminated backends")
            run.say("waiting for the rest")
            world.wait_until_done()
            world.end_alive(pool, SEATS)
        world.run_final_checks()


def restart(run: Run, world: World, mode: StopMode) -> None:
    """Restart PostgreSQL; what counts is the request that it has noted down."""
    log = world.postgres.folder / "server.log"
    words = SHUTDOWN.format(mode=mode)
    before = log.read_text(errors="replace").count(words)
    world.postgres.restart(mode)
    run.faults[f"{mode} restarts"] += log.read_text(errors="replace").count(words) - before


def terminate_backends(run: Run, world: World) -> None:
    """Terminate one backend after the other until it is time for the next restart; see that there is work."""
    until = time.monotonic() + run.random.uniform(1, BETWEEN_RESTARTS.total_seconds())
    while time.monotonic() < until:
        if world.waiting() < SEATS:
            world.fill(300)
            world.enqueue(20)
        time.sleep(run.random.uniform(0, BETWEEN_TERMINATIONS.total_seconds()))
        run.faults["terminated backends"] += world.ask(TERMINATE)
