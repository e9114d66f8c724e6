"""The token of both sides expires in the middle of the work, and is renewed later."""

from datetime import timedelta

from support.processes.processes import wait_for
from torture.bad_s3 import BadS3
from torture.run import Run
from torture.world import World

WHAT = "S3 refuses every request with ExpiredToken until an operator renews the token and resumes the migration"

FAULTS = frozenset({"requests with an expired token", "pauses with a reason"})

SEATS = 4
EXPIRED = (400, "ExpiredToken")
PAUSED = "select count(*)::int from rowferry.migration where paused_at is not null and pause_reason is not null"
HELD_AGAINST = """
select (select count(*) from rowferry.batch_queue where status = 'ERROR')::int
    + (select count(*) from rowferry.entry_failure)::int as held_against
"""
REASONS = "select distinct reason from rowferry.entry_failure union select error from rowferry.batch_queue limit 5"
ATTEMPTS = "select count(*)::int from rowferry.batch_attempt where verdict = 'RELEASED'"
DONE = "select count(*)::int from rowferry.batch_queue where status = 'DONE'"
MOST_RELEASED = 20
"""Attempts at the most that come to nothing each time, over all workers: the migration is paused after few of each."""
WITHIN = timedelta(seconds=120)


def torture(run: Run) -> None:
    """Let the token expire, see the migration paused at little cost, renew the token and resume."""
    times, entries = (1, 300) if run.short else (4, 2000)
    with run.world() as world, BadS3(world.s3.endpoint_url, 0, {}).running() as s3:
        world.migration.reach_through(s3.endpoint_url)
        world.fill(entries, large=1)
        world.enqueue(10)
        s3.delay = timedelta(seconds=0.02)
        with world.workers(SEATS, "--parallel=4") as pool:
            for number in range(times):
                run.say(f"{number} of {times} tokens")
                expire(run, world, s3)
            run.faults["requests with an expired token"] += s3.counts["refused"]
            run.say("waiting for the rest")
            world.wait_until_done()
            world.end_alive(pool, SEATS)
        world.run_final_checks()


def expire(run: Run, world: World, s3: BadS3) -> None:
    """Refuse everything in the middle of the work until the migration is paused; then let it go on."""
    done, released = world.ask(DONE), world.ask(ATTEMPTS)

    def is_busy() -> bool:
        if world.waiting() < 4 * SEATS:
            world.fill(200, large=0)
            world.enqueue(10)
        return world.ask(DONE) > done

    wait_for(is_busy, deadline=WITHIN)
    s3.refusal = EXPIRED
    try:
        wait_for(lambda: world.ask(PAUSED) > 0, deadline=WITHIN)
    except AssertionError:
        world.auditor.report("the migration was not paused while its token was refused")
    else:
        run.faults["pauses with a reason"] += 1
    s3.refusal = None
    if held := world.ask(HELD_AGAINST):
        reasons = world.query(REASONS)
        world.auditor.report(f"the expired token was held against {held} batches and entries: {reasons}")
    if (lost := world.ask(ATTEMPTS) - released) > MOST_RELEASED:
        world.auditor.report(f"{lost} attempts came to nothing before the migration was paused")
    world.rowferry("resume")
