"""A job ends sessions that are idle in a transaction, as a cron job would, while S3 is slow."""

import time
from datetime import timedelta

from support.processes.processes import wait_for
from torture.bad_s3 import BadS3
from torture.run import Run
from torture.world import World

WHAT = "sessions of workers terminated in the middle of a batch, transaction_timeout far below a batch's time, slow S3"

FAULTS = frozenset({"sessions terminated in a batch"})

SEATS = 4
SETTINGS = {"transaction_timeout": "2s"}
"""Of the server, for everybody: a batch takes longer, since S3 takes half a second for each request."""
DELAY = timedelta(seconds=0.5)
TERMINATE = """
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
CRASHES = """
select count(*)::int from rowferry.batch_queue where crashes > 0 or error like '%%while it held this batch%%'
"""
COUNTED = "batch has crashed workers or lost connections before"
"""What a worker logs of a batch that it takes for one with a crash behind it."""


def torture(run: Run) -> None:
    """Terminate sessions in the middle of batches: no batch may be taken for one that has killed its worker."""
    strikes, entries = (5, 120) if run.short else (40, 1000)
    with run.world(settings=SETTINGS) as world, BadS3(world.s3.endpoint_url, 0, {}).running() as slow:
        world.migration.reach_through(slow.endpoint_url)
        world.fill(entries, large=1)
        world.enqueue(20)
        slow.delay = DELAY
        with world.workers(SEATS, "--parallel=8", "--max-batches=1") as pool:
            strike(run, world, strikes)
            slow.delay = timedelta()
            run.say("waiting for the rest")
            world.wait_until_done()
            world.end_alive(pool, SEATS)
            if COUNTED in pool.logs() or world.ask(CRASHES):
                world.auditor.report("a batch was taken for one that kills workers, and every worker lived")
        world.run_final_checks()


def strike(run: Run, world: World, strikes: int) -> None:
    """Terminate one session after the other, each at another batch; see that there is work."""
    struck: list[int] = []

    def strike_once() -> bool:
        if world.waiting() < 2 * SEATS:
            world.fill(100, large=0)
            world.enqueue(20)
        found = world.query(TERMINATE, struck)
        struck.extend(row["batch_id"] for row in found)
        return bool(found)

    for number in range(strikes):
        run.say(f"{number} of {strikes} sessions")
        wait_for(strike_once, deadline=timedelta(seconds=90))
        run.faults["sessions terminated in a batch"] += 1
        time.sleep(run.random.uniform(0, 0.5))
