"""Workers are killed at random moments, 8 of them, and replaced at once."""

import time
from datetime import timedelta
from signal import SIGKILL
from typing import Any

from support.processes.processes import wait_for
from torture.run import Run
from torture.workers import WorkerPool
from torture.world import World

WHAT = "SIGKILL at random moments, over 8 workers that are replaced at once; server-side copies, then streamed ones"

FAULTS = frozenset({"SIGKILL"})

SEATS = 8
LONGEST_LIFE = timedelta(seconds=1.2)
"""Between two kills lies up to this long, over all workers."""
SHARE_AT_WORK = 0.8
"""So many of the victims hold a batch; the others may as well be starting."""
PLAN: dict[str, dict[str, Any]] = {
    # A batch that was killed by chance so often is no poison.
    "migration": {"max_attempts": 50},
    # Slow enough for a kill to meet workers in the middle of a batch.
    "production": {"max_requests_per_second": 150},
}
AT_WORK = """
select w.pid from rowferry.worker as w
where exists (select from rowferry.batch_attempt as a where a.worker_id = w.id and a.verdict is null)
"""
WORKERS = "select pid from rowferry.worker"
CUT_OFF = "select count(*)::int from rowferry.batch_attempt where verdict is null"


def torture(run: Run) -> None:
    """Kill at random, with each copy method; in the short form with one of them."""
    ways = ("server", "stream")
    for way in run.random.sample(ways, 1) if run.short else ways:
        torture_way(run, way)


def torture_way(run: Run, way: str) -> None:
    kills, entries, seats = (3, 200, 2) if run.short else (100, 3000, SEATS)
    with run.world(plan=PLAN | {"migration": {**PLAN["migration"], "transfer": way}}) as world:
        migrate_under_kills(run, world, kills, entries, seats)
        world.run_final_checks()


def migrate_under_kills(run: Run, world: World, kills: int, entries: int, seats: int) -> None:
    """Let workers migrate so many entries, and kill so many of them meanwhile."""
    world.fill(entries, large=entries // 100)
    world.enqueue()
    with world.workers(seats, "--parallel=8") as pool:
        kill_at_random(run, world, pool, kills, entries // 6)
        run.say("waiting for the rest")
        world.wait_until_done()
        wait_for(lambda: {row["pid"] for row in world.query(WORKERS)}.issuperset(pool.pids))  # which hear signals
        assert pool.stop() == [0] * seats
        count_deaths(run, world, pool)
    run.faults["batches cut off"] += world.ask(CUT_OFF)
    run.faults["uploads cut off"] += len(world.migration.production.open_uploads())


def count_deaths(run: Run, world: World, pool: WorkerPool) -> None:
    """Count the workers that SIGKILL has ended; what else one may have died of is a violation."""
    for death in pool.deaths:
        if death.status == -SIGKILL:
            run.faults["SIGKILL"] += 1
        else:
            world.auditor.report(f"a worker died of something else: {death}: {pool.log_of(death.seat)[-800:]}")


def kill_at_random(run: Run, world: World, pool: WorkerPool, kills: int, more: int) -> None:
    """Kill so many workers, most of them in the middle of a batch; add `more` entries whenever the work runs out."""
    for number in range(kills):
        pid = None
        while pid is None:
            if world.waiting() < len(pool.pids):
                world.fill(more, large=1 + more // 100)
                world.enqueue()
            time.sleep(run.random.uniform(0, LONGEST_LIFE.total_seconds()))
            at_work = {row["pid"] for row in world.query(AT_WORK)}
            pid = pool.kill_one(run.random, among=at_work if run.random.random() < SHARE_AT_WORK else None)
        run.say(f"{number + 1} of {kills} killed; {world.waiting()} batches wait")
