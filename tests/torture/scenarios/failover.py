"""The primary crashes under the workers, and its streaming standby takes its place."""

from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from rowferry_lab.servers.postgres import EmbeddedPostgres
from support.processes.processes import wait_for
from torture.final_checks import Expected
from torture.run import Run
from torture.standby import cut_off, dsn_of_both, make_standby, promote, wait_for_standby
from torture.world import World

WHAT = "The primary crashes, its streaming standby is promoted: synchronous first, then one that had fallen behind"

FAULTS = frozenset({"failovers"})

SEATS = 4
BATCH_SIZE = 10
DONE = "select coalesce(array_agg(id), '{}') from rowferry.batch_queue where status = 'DONE'"
WITHIN = timedelta(seconds=120)


def torture(run: Run) -> None:
    """Fail over twice: so that nothing acknowledged is lost, and so that something must be."""
    fail_over(run, synchronous=True)
    if not run.short:
        fail_over(run, synchronous=False)


def fail_over(run: Run, *, synchronous: bool) -> None:
    entries = 400 if run.short else 2000
    with ExitStack() as until:
        primary = until.enter_context(EmbeddedPostgres())
        folder = Path(until.enter_context(TemporaryDirectory(prefix="rowferry-standby-")))
        standby = until.enter_context(make_standby(primary, folder))
        world = until.enter_context(run.world(postgres=primary, dsn=dsn_of_both(primary, standby)))
        wait_for_standby(primary, synchronous=synchronous)
        run.say("the standby streams")
        world.fill(entries, large=2)
        world.enqueue(BATCH_SIZE)
        with world.workers(SEATS, "--parallel=8") as pool:
            wait_until_done_are(world, entries // BATCH_SIZE // 4)
            if not synchronous:
                cut_off(primary, standby)
                wait_until_done_are(world, entries // BATCH_SIZE // 2)
            lose_primary(run, world, primary, standby, synchronous=synchronous)
            world.wait_until_done()
            assert pool.stop() == [0] * SEATS
            for death in pool.deaths:
                world.auditor.report(f"a worker died of it: {death}")
        world.run_final_checks(Expected(ledger_went_back=not synchronous))


def lose_primary(
    run: Run, world: World, primary: EmbeddedPostgres, standby: EmbeddedPostgres, *, synchronous: bool
) -> None:
    """Crash the primary, promote the standby, and look at what it knows of what was done."""
    done = set(world.ask(DONE))
    assert world.waiting(), "all was done before the crash: nothing was proved"
    primary.stop("immediate")
    promote(standby)
    run.faults["failovers"] += 1
    forgotten = len(done - set(world.ask(DONE)))
    run.say(f"failed over; {forgotten} batches that were DONE are to be done again")
    if synchronous and forgotten:
        world.auditor.report(f"{forgotten} batches were DONE and are not any more")
    if not synchronous:
        assert forgotten, "the standby had not fallen behind: nothing was proved"
        run.faults["batches lost by the standby"] += forgotten


def wait_until_done_are(world: World, batches: int) -> None:
    wait_for(lambda: len(world.ask(DONE)) >= batches, deadline=WITHIN)
