"""A chain of queues: objects are copied, compared, noted and noted again, and items take a way of their own."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from signal import SIGKILL
from typing import Any, get_args

import pytest

from rowferry.batch import Outcome
from rowferry_lab.servers.postgres import StopMode
from rowferry_queues.migrate.spec import MIGRATE
from rowferry_queues.verify.spec import VERIFY
from support.processes.processes import wait_for
from support.queue.lines import CLASS
from support.queue.plug_in import NOTES, PlugIn, forget
from torture import final_checks
from torture.bad_s3 import BadS3
from torture.run import Run
from torture.scenarios.bad_s3 import HURRY
from torture.scenarios.database import restart
from torture.scenarios.kills import AT_WORK
from torture.workers import WorkerPool
from torture.world import World

WHAT = "four queues in a chain, and items: SIGKILL, restarts of PostgreSQL and a bad S3 at once, over 4 workers"

FAULTS = frozenset({"SIGKILL", "fast restarts", "throttled", "answered 500", "batches handed on in parts"})

SEATS = 4
LONGEST_LIFE = timedelta(seconds=1)
WITHIN = timedelta(seconds=400)
MOST_NOTES = 2
"""Batches of `note` that may be claimed at once."""
FIRST, SECOND, ITEMS = "note", "echo", "items_alone"
RATES = {"throttled": 0.05, "answered 500": 0.5, "reset": 0.01}
"""So often that some entries fail although each request is tried again: their batches are handed on in parts."""
NEXT = {MIGRATE.name: VERIFY.name, VERIFY.name: FIRST, FIRST: SECOND, ITEMS: SECOND}
PLAN: dict[str, dict[str, Any]] = {
    # A batch that was killed by chance so often is no poison, and one that met the bad server so often is not hopeless.
    "migration": {"max_attempts": 90},
    "queue": {name: {"then": [following]} for name, following in NEXT.items()} | {SECOND: {}},
}
PLAN["queue"][FIRST] |= {"max_in_hand": MOST_NOTES, "column": "note"}
INSERT_ITEMS = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts)
select
    m.id, %s, jsonb_build_object('unsettled', null, 'items', jsonb_agg(jsonb_build_object('id', 'item ' || n))),
    count(*), 90
from rowferry.migration as m, generate_series(1, %s) as n
group by m.id, (n - 1) / 10
returning id
"""
TAKEN = """
select coalesce(max(taken), 0)::int from (
    select count(*) as taken from pg_locks
    where locktype = 'advisory' and classid = %s and granted group by objid::bigint / 1024
) as places
"""
SETTLED = f"""
select
    coalesce(sum(entry_count), 0)::int as entries, coalesce(sum(migrated + kept), 0)::int as settled,
    coalesce(sum({" + ".join(Outcome)}), 0)::int as outcomes,
    count(*) filter (where status <> 'DONE')::int as unfinished
from rowferry.batch_queue where queue_name = %s
"""
TOLD = "select entries::int, (migrated + kept)::int as settled from rowferry.progress where queue_name = %s"
NOTED = "select id, times from public.notes where queue = %s"
IN_PARTS = "select count(*)::int from rowferry.batch_queue where payload ? 'only'"
BAD = "update public.avatars set note = 'bad' where id % 97 = 1"
GOOD = "update public.avatars set note = null where note = 'bad'"


def torture(run: Run) -> None:
    """Everything at once, and then all of it is let end."""
    kills, restarts, entries, items = (6, 2, 200, 100) if run.short else (30, 6, 700, 1000)
    with plugged_in() as folder, run.world(plan=PLAN) as world:
        world.environment["PYTHONPATH"] = str(folder)
        with BadS3(world.s3.endpoint_url, run.random.randrange(2**32), RATES).running() as bad:
            world.migration.reach_through(bad.endpoint_url)
            world.migration.execute(NOTES)
            world.fill(entries, large=2)
            world.migration.execute("alter table public.avatars add column note text")
            world.migration.execute(BAD)
            rates, bad.rates = bad.rates, {}
            world.enqueue(20)
            world.query(INSERT_ITEMS, ITEMS, items)
            bad.rates = rates
            with world.workers(SEATS, "--parallel=8", "--request-timeout=3") as pool:
                harm(run, world, pool, kills, restarts)
                run.say("waiting for what can be settled")
                finish(world)
                bad.rates = {}
                mend(world)
                run.say("waiting for the rest")
                finish(world)
                assert pool.stop() == [0] * SEATS
                run.faults["SIGKILL"] += sum(death.status == -SIGKILL for death in pool.deaths)
            run.faults.update({kind: bad.counts[kind] for kind in RATES})
            run.faults["batches handed on in parts"] += world.ask(IN_PARTS)
            check(world, items)


@contextmanager
def plugged_in() -> Iterator[Path]:
    """Install the package of support/queue/plug_in.py for this process and those that it starts; yield its folder."""
    with tempfile.TemporaryDirectory(prefix="rowferry-plug-in-") as folder, pytest.MonkeyPatch.context() as patch:
        PlugIn(Path(folder), patch)
        try:
            yield Path(folder)
        finally:
            patch.undo()
            forget()


def harm(run: Run, world: World, pool: WorkerPool, kills: int, restarts: int) -> None:
    """Kill workers with a batch, and restart PostgreSQL now and then, as long as there is work."""
    for number in range(kills):
        if number % (kills // restarts) == 0:
            restart(run, world, get_args(StopMode)[number // (kills // restarts) % 2])
        killed = None
        while killed is None:
            time.sleep(run.random.uniform(0, LONGEST_LIFE.total_seconds()))
            at_work = {row["pid"] for row in world.query(AT_WORK)}
            killed = pool.kill_one(run.random, among=at_work)
            if not world.waiting():
                return
        if (taken := world.ask(TAKEN, CLASS)) > MOST_NOTES:
            world.auditor.report(f"{taken} batches of {FIRST} were claimed at once")
        run.say(f"{number + 1} of {kills} killed; {world.waiting()} batches wait")


def mend(world: World) -> None:
    """Take back what makes entries fail, and put their batches back."""
    world.migration.close()  # its connection was to the PostgreSQL before the restart
    world.migration.execute(GOOD)
    world.rowferry("requeue", "--all")


def finish(world: World) -> None:
    """Return when no batch is INIT any more; what rests is due at once."""

    def look() -> bool:
        world.query(HURRY)
        return world.waiting() == 0

    wait_for(look, deadline=WITHIN)


def check(world: World, items: int) -> None:
    """Count what does not add up."""
    world.auditor.end()
    for part in (check_chain, check_notes):
        for words in part(world, items):
            world.auditor.report(words)
    expected = final_checks.Expected()
    for each in (
        final_checks.check_rows,
        final_checks.check_production,
        final_checks.check_legacy,
        final_checks.check_uploads,
        final_checks.check_locks,
        final_checks.check_attempts,
    ):
        for words in each(world, expected):
            world.auditor.report(words)


def check_chain(world: World, items: int) -> Iterator[str]:
    """Yield where a queue was given another number of entries than it must, or its accounts disagree."""
    wanted = dict.fromkeys((MIGRATE.name, VERIFY.name, FIRST), world.entries)
    for queue, entries in {**wanted, SECOND: world.entries + items, ITEMS: items}.items():
        (found,) = world.query(SETTLED, queue)
        told = world.query(TOLD, queue)
        if found != {"entries": entries, "settled": entries, "outcomes": entries, "unfinished": 0}:
            yield f"{queue} should have settled {entries} entries: {found}"
        if told != [{"entries": entries, "settled": entries}]:
            yield f"the views tell {told} of {entries} entries of {queue}"


def check_notes(world: World, items: int) -> Iterator[str]:
    """Yield the entries that a queue did not do exactly once; a note is written with the verdict on its batch."""
    rows = {str(number) for number in range(1, world.entries + 1)}
    named = {f"item {number}" for number in range(1, items + 1)}
    for queue, wanted in ((FIRST, rows), (SECOND, rows | named), (ITEMS, named)):
        noted = {row["id"]: row["times"] for row in world.query(NOTED, queue)}
        if lost := wanted - set(noted):
            yield f"{queue} lost {len(lost)} entries, such as {min(lost)}"
        if strange := set(noted) - wanted:
            yield f"{queue} was given {len(strange)} entries of nobody, such as {min(strange)}"
        if twice := [entry for entry, times in noted.items() if times > 1]:
            yield f"{queue} did {len(twice)} entries more than once, such as {min(twice)}"
