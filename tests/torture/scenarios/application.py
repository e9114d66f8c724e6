"""The application goes on writing; passes catch its new rows, and `rowferry verify` what it overwrote."""

import time
from datetime import timedelta

from support.entries.entry_table import FROM, TO
from torture.application import Application
from torture.audit_log import AuditLog
from torture.final_checks import Expected
from torture.run import Run
from torture.world import World

WHAT = "the application inserts, renames and deletes rows, and overwrites and deletes objects, throughout"

FAULTS = frozenset({"rows inserted", "rows renamed", "rows deleted", "objects overwritten", "objects deleted"})

SEATS = 4
MOST_PASSES = 10
LEGACY = "select count(*)::int from public.avatars where path like 'image/%%'"
REPAIRED = "select sum(migrated)::int from rowferry.batch_queue where queue_name = 'verify'"
ROWS = "select count(*)::int from public.avatars"
IN_ERROR = """
select count(*)::int from public.avatars as e
where exists (
    select from rowferry.batch_queue as q
    where q.queue_name = 'verify' and q.status = 'ERROR'
    and e.id between (q.payload ->> 'first')::bigint and (q.payload ->> 'last')::bigint
)
"""
WITHIN = timedelta(seconds=300)


def torture(run: Run) -> None:
    """Migrate under the running application; once it rests, a last pass and a repair must make everything agree."""
    entries, seconds = (400, 6) if run.short else (4000, 60)
    with run.world() as world:
        audit_log = AuditLog(world)
        world.fill(entries, large=2)
        world.enqueue()
        with world.workers(SEATS, "--parallel=8") as pool:
            with Application(world, world.oracle, run.random.randrange(2**32)) as application:
                go_on(run, world, application, audit_log, seconds)
            if application.fault is not None:
                raise application.fault
            run.faults.update(application.done)
            make_passes(run, world)
            assert pool.stop() == [0] * SEATS
        verified = repair(run, world)
        account(world, application, audit_log, verified)


def go_on(run: Run, world: World, application: Application, audit_log: AuditLog, seconds: float) -> None:
    """Return when the application has done all that it can do, for long enough, and workers half of their work."""
    began = time.monotonic()

    def is_enough() -> bool:
        run.say(f"{application.done.total()} writes")
        world.enqueue()
        if application.fault is not None:
            return True
        is_late = time.monotonic() - began > seconds
        return is_late and audit_log.moves > world.entries // 2 and all(application.done[kind] for kind in FAULTS)

    while not is_enough():
        assert time.monotonic() - began < WITHIN.total_seconds(), f"{application.done}, {audit_log.moves} moves"
        time.sleep(1)


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


def repair(run: Run, world: World) -> int:
    """Copy again what was overwritten after its copy, until verify finds everything equal.

    Return how many entries the three passes had to account for: all rows in each, but that a batch in ERROR is done
    again by the next one instead of a new batch.
    """
    # S3 tells times in seconds: what was overwritten in the second of its copy is not seen to be older.
    world.rowferry("verify", "--repair", "--yes", statuses=(0, 1))
    again = world.ask(IN_ERROR)
    world.rowferry("verify", "--repair", "--overwrite", "--yes")
    run.faults["objects repaired"] += world.ask(REPAIRED)
    world.rowferry("verify", "--deep", "--yes")
    return 3 * world.ask(ROWS) - again


def account(world: World, application: Application, audit_log: AuditLog, verified: int) -> None:
    """Hold the queue against the table's own audit log; from now on only what was written last is right.

    The auditor must have ended: what it has read before the repair, it would now take for a violation.
    """
    world.auditor.end()
    world.entries += application.done["rows inserted"]
    for row_id, body in application.bodies.items():
        world.oracle.expect(row_id, body)
    for words in audit_log.differences(application.done):
        world.auditor.report(words)
    world.run_final_checks(
        Expected(
            written=application.written,
            strays=lambda key: key.replace(TO, FROM, 1) in application.retired,
            sum_of_entries=audit_log.moves + audit_log.explained + verified,
        )
    )
