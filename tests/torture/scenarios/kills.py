"""Scenario 1: workers are killed at random moments, and at each named step of a batch."""

import time
from datetime import timedelta

from torture.crew import Crew
from torture.run import Run
from torture.world import World

WHAT = "SIGKILL at random moments, over 8 workers that are replaced at once"

SEATS = 8
LONGEST_LIFE = timedelta(seconds=1.2)
"""Between two kills lies up to this long, over all workers."""


def torture(run: Run) -> None:
    """Kill at random."""
    kills, entries = (12, 600) if run.short else (200, 5000)
    with run.world() as world:
        world.fill(entries, large=3)
        world.enqueue()
        with world.workers(SEATS, "--parallel=8") as crew:
            kill_at_random(run, world, crew, kills)
            run.say("waiting for the rest")
            world.wait_until_done()
            assert crew.stop() == [0] * SEATS
        world.settle()


def kill_at_random(run: Run, world: World, crew: Crew, kills: int) -> None:
    """Kill so many workers, and add entries whenever the work runs out before that."""
    while run.faults["SIGKILL"] < kills:
        if world.waiting() < SEATS:
            world.fill(500)
            world.enqueue()
        time.sleep(run.random.uniform(0, LONGEST_LIFE.total_seconds()))
        if crew.kill_one(run.random) is not None:
            run.faults["SIGKILL"] += 1
            run.say(f"{run.faults['SIGKILL']} of {kills} killed; {world.waiting()} batches wait")
