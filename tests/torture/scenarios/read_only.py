"""The database takes no writes for a while, as at a full disk or right after a failover."""

import time
from datetime import timedelta

import psycopg

from support.processes.processes import wait_for
from torture.run import Run
from torture.world import World

WHAT = "the database is read-only for some seconds, again and again, over 4 workers; not one of them ends"

FAULTS = frozenset({"read-only moments"})

SEATS = 4
REFUSED = "read-only transaction"
"""What the server's own log says of each write that it refused."""
TROUBLED = "select count(*)::int from rowferry.batch_queue where status = 'ERROR' or crashes > 0"
DONE = "select count(*)::int from rowferry.batch_queue where status = 'DONE'"
LIVE = "select count(*)::int from rowferry.live_workers"
WITHIN = timedelta(seconds=90)


def torture(run: Run) -> None:
    """Forbid writes until workers were refused, allow them again, and see that the work goes on."""
    moments, entries = (2, 200) if run.short else (8, 2000)
    with run.world() as world:
        world.fill(entries, large=1)
        world.enqueue(20)
        with world.workers(SEATS, "--parallel=8") as pool:
            # One that starts without a database that takes writes ends with a sentence, as with a wrong address.
            wait_for(lambda: world.ask(LIVE) == SEATS, deadline=WITHIN)
            for number in range(moments):
                run.say(f"{number} of {moments} moments")
                see_work(world)
                forbid_writes(run, world)
            run.say("waiting for the rest")
            world.wait_until_done()
            world.end_alive(pool, SEATS)
        if troubled := world.ask(TROUBLED):
            world.auditor.report(f"{troubled} batches were held to have failed or crashed")
        world.run_final_checks()


def forbid_writes(run: Run, world: World) -> None:
    """Make the whole server read-only for new transactions until a worker was refused, and a little longer."""
    before = count_refusals(world)
    make_read_only(world, is_on=True)
    try:
        wait_for(lambda: count_refusals(world) > before, deadline=WITHIN)
        time.sleep(run.random.uniform(0.5, 2))
    finally:
        make_read_only(world, is_on=False)
    run.faults["read-only moments"] += 1


def make_read_only(world: World, *, is_on: bool) -> None:
    with psycopg.connect(world.migration.dsn, autocommit=True) as connection:
        value = "on" if is_on else "off"
        connection.execute(f"alter system set default_transaction_read_only = {value}".encode())
        connection.execute("select pg_reload_conf()")


def count_refusals(world: World) -> int:
    return (world.postgres.folder / "server.log").read_text(errors="replace").count(REFUSED)


def see_work(world: World) -> None:
    """Return once a batch has been finished since, with more of them waiting."""
    done = world.ask(DONE)

    def look() -> bool:
        if world.waiting() < 2 * SEATS:
            world.fill(200, large=0)
            world.enqueue(20)
        return world.ask(DONE) > done

    wait_for(look, deadline=WITHIN)
