"""Scenario 7: the application goes on writing; passes catch its new rows, and `rowferry verify` what it overwrote."""

import time
from datetime import timedelta

from entry_table import FROM, TO
from torture.application import Application
from torture.run import Run
from torture.settlement import Expected
from torture.world import World

WHAT = "the application inserts, renames and deletes rows, and overwrites and deletes objects, throughout"

SEATS = 4
MOST_PASSES = 10
LEGACY = "select count(*)::int from public.avatars where path like 'image/%%'"
OUTCOMES = "select sum(entry_count)::int from rowferry.batch_queue"
REPAIRED = "select sum(migrated)::int from rowferry.batch_queue where queue_name = 'verify'"
WITHIN = timedelta(seconds=300)


def torture(run: Run) -> None:
    """Migrate under the running application; once it rests, a last pass and a repair must make everything agree."""
    entries, seconds = (400, 6) if run.short else (4000, 60)
    with run.world() as world:
        world.fill(entries, large=1)
        world.enqueue()
        with world.workers(SEATS, "--parallel=8") as crew:
            with Application(world, world.truth, run.random.randrange(2**32)) as application:
                until = time.monotonic() + seconds
                while time.monotonic() < until or world.ask(OUTCOMES) < entries:
                    run.say(f"{application.done.total()} writes")
                    time.sleep(1)
                    world.enqueue()
            if application.fault is not None:
                raise application.fault
            run.faults.update(application.done)
            make_passes(run, world)
            assert crew.stop() == [0] * SEATS
        repair(run, world)
        account(run, world, application)


def make_passes(run: Run, world: World) -> None:
    """Enqueue until a pass finds no legacy row any more."""
    for _ in range(MOST_PASSES):
        world.enqueue()
        world.wait_until_done(WITHIN)
        # An object that was deleted with its row is missing, until the batch is tried again and finds no row either.
        world.rowferry("requeue", "--all")
        world.wait_until_done(WITHIN)
        run.faults["passes"] += 1
        if not world.ask(LEGACY):
            return
    world.auditor.report(f"after {MOST_PASSES} passes {world.ask(LEGACY)} rows are still legacy")


def repair(run: Run, world: World) -> None:
    """Copy again what was overwritten after its copy, until verify finds everything equal."""
    # S3 tells times in seconds: what was overwritten in the second of its copy is not seen to be older.
    world.rowferry("verify", "--repair", "--yes", statuses=(0, 1))
    world.rowferry("verify", "--repair", "--overwrite", "--yes")
    run.faults["objects repaired"] += world.ask(REPAIRED)
    world.rowferry("verify", "--deep", "--yes")


def account(run: Run, world: World, application: Application) -> None:
    """From now on only what was written last is right."""
    for row_id, body in application.bodies.items():
        world.truth.expect(row_id, body)
    run.entries += len(application.keys) - world.entries
    world.settle(
        Expected(
            written=application.written,
            strays=lambda key: key.replace(TO, FROM, 1) in application.retired,
            sum_of_entries=world.ask(OUTCOMES),
        )
    )
