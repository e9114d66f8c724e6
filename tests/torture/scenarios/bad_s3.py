"""An S3 server that throttles, fails, lies, falls silent and breaks off, before one that is honest."""

from datetime import timedelta

from support.processes.processes import wait_for
from torture.bad_s3 import RATES, BadS3
from torture.run import Run
from torture.world import World

WHAT = "S3 throttles 20 %, answers 500 and 200 with an error, resets, never answers, truncates, gives wrong ETags"

FAULTS = frozenset(RATES)

SEATS = 4
REQUEST_TIMEOUT = timedelta(seconds=3)
WAYS = {"copied by the server": "server", "streamed": "stream"}
IN_ERROR = "select count(*)::int from rowferry.batch_queue where status = 'ERROR'"
HURRY = """
with resting as (
    select id from rowferry.batch_queue where status = 'INIT' and run_after > now() for update skip locked
)
update rowferry.batch_queue as q set run_after = now() from resting as r where q.id = r.id returning q.id
"""
WITHIN = timedelta(seconds=300)


def torture(run: Run) -> None:
    """Migrate through the bad server, by both copy methods."""
    entries = 250 if run.short else 2500
    for words, transfer in WAYS.items():
        run.say(words)
        with run.world(plan={"migration": {"transfer": transfer}}) as world:
            with BadS3(world.s3.endpoint_url, run.random.randrange(2**32)).running() as bad:
                world.migration.reach_through(bad.endpoint_url)
                world.fill(entries, large=2)
                migrate(run, world, bad)
            run.faults.update(bad.counts)


def migrate(run: Run, world: World, bad: BadS3) -> None:
    """Let workers do what they can; what is in ERROR by then is put back once the server has come to reason."""
    rates, bad.rates = bad.rates, {}
    world.enqueue()
    bad.rates = rates
    with world.workers(SEATS, "--parallel=8", f"--request-timeout={REQUEST_TIMEOUT.total_seconds()}") as pool:
        finish(world)
        run.faults["batches in ERROR"] += world.ask(IN_ERROR)
        bad.rates = {}
        world.rowferry("requeue", "--all")
        finish(world)
        world.end_alive(pool, SEATS)
    world.run_final_checks()


def finish(world: World) -> None:
    """Return when no batch is INIT any more; no batch rests for long before the next attempt."""

    def look() -> bool:
        world.query(HURRY)
        return world.waiting() == 0

    wait_for(look, deadline=WITHIN)
