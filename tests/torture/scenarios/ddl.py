"""The application changes its table beside the workers, and will not wait for long."""

import time
from datetime import timedelta

import psycopg

from support.processes.processes import wait_for
from torture.bad_s3 import BadS3
from torture.run import Run
from torture.world import World

WHAT = "ALTER TABLE on the entries' table, with a lock_timeout of 2 s, beside workers whose S3 takes seconds"

FAULTS = frozenset({"changes of the table beside claimed batches"})

SEATS = 4
DELAY = timedelta(seconds=3)
"""A claimed batch waits for S3 nearly all the time, and for longer than the application would."""
IN_HAND = "select count(*)::int from rowferry.batch_attempt where finished_at is null"
CHANGES = ("alter table public.avatars add column extra text", "alter table public.avatars drop column extra")
WITHIN = timedelta(seconds=90)


def torture(run: Run) -> None:
    """Add a column and drop it again, over and over, each time while batches are claimed."""
    changes, entries = (6, 120) if run.short else (40, 800)
    with run.world() as world, BadS3(world.s3.endpoint_url, 0, {}).running() as slow:
        world.migration.reach_through(slow.endpoint_url)
        world.fill(entries, large=1)
        world.enqueue(10)
        slow.delay = DELAY
        with world.workers(SEATS, "--parallel=8") as pool:
            for number in range(changes):
                run.say(f"{number} of {changes} changes")
                change(run, world, CHANGES[number % 2])
                time.sleep(run.random.uniform(0, 0.5))
            slow.delay = timedelta()
            run.say("waiting for the rest")
            world.wait_until_done()
            world.end_alive(pool, SEATS)
        world.run_final_checks()


def change(run: Run, world: World, statement: str) -> None:
    """Change the table while batches are claimed; it is a violation if the application gets no lock."""

    def is_busy() -> bool:
        if world.waiting() < 2 * SEATS:
            world.fill(60, large=0)
            world.enqueue(10)
        return world.ask(IN_HAND) >= SEATS

    wait_for(is_busy, deadline=WITHIN)
    with psycopg.connect(world.migration.dsn, autocommit=True, options="-c lock_timeout=2s") as connection:
        try:
            connection.execute(statement.encode())
        except psycopg.errors.LockNotAvailable:
            world.auditor.report(f"{statement!r} got no lock within 2 s")
            return
    run.faults["changes of the table beside claimed batches"] += 1
