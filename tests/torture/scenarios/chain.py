"""A chain of queues: objects are copied, compared, noted and noted again, and items take a way of their own."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rowferry.batch import Outcome
from rowferry_queues.migrate.spec import MIGRATE
from rowferry_queues.verify.spec import VERIFY
from support.queue.lines import CLASS
from support.queue.plug_in import NOTES, PlugIn, forget
from torture.final_checks import CHECKS, Expected, check_batches
from torture.scenarios.postgres import restart
from torture.scenarios.s3 import Bad
from torture.scenarios.scenario import Size
from torture.world import World

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
PLAN["queue"][FIRST] |= {"max_claimed": MOST_NOTES, "column": "note"}
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


class Chain(Bad):
    """Everything at once, and then all of it is let end."""

    what = "four queues in a chain, and items: SIGKILL, restarts of PostgreSQL and a bad S3 at once, over 4 workers"
    faults = frozenset({"SIGKILL", "fast restarts", "throttled", "answered 500", "batches handed on in parts"})
    forms = ("",)
    short, long = Size(6, 200), Size(30, 700)
    """Kills; a restart comes after each few of them."""
    within = timedelta(seconds=400)
    batch = 20
    plan = PLAN
    loses_database = True

    def build(self, until: ExitStack) -> World:
        folder = until.enter_context(plugged_in())
        world = super().build(until)
        self.s3.rates = dict(RATES)
        world.environment["PYTHONPATH"] = str(folder)
        return world

    def fill(self) -> None:
        self.items = 100 if self.run.short else 1000
        migration = self.world.migration
        migration.execute(NOTES)
        migration.execute("alter table public.avatars add column note text")
        super().fill()
        migration.execute(BAD)
        self.world.query(INSERT_ITEMS, ITEMS, self.items)

    def cause(self) -> None:
        self.harm()
        self.say("waiting for what can be settled")
        self.finish()
        self.s3.rates = {}
        self.world.migration.close()  # its connection was to the PostgreSQL before the restart
        self.world.migration.execute(GOOD)
        self.world.rowferry("requeue", "--all")
        self.say("waiting for the rest")
        self.finish()

    def harm(self) -> None:
        """Kill workers with a batch, and restart PostgreSQL now and then, as long as there is work."""
        kills_a_restart = 3 if self.run.short else 5
        for number in range(self.times):
            if number % kills_a_restart == 0:
                restart(self, number // kills_a_restart)
            killed = None
            while killed is None:
                self.pause(1)
                killed = self.kill_worker(1.0)
                if not self.world.waiting():
                    return
            if (taken := self.world.ask(TAKEN, CLASS)) > MOST_NOTES:
                self.report(f"{taken} batches of {FIRST} were claimed at once")
            self.say(f"{number + 1} of {self.times} killed; {self.world.waiting()} batches wait")

    def end(self) -> None:
        self.end_killed()
        self.run.faults.update({kind: self.s3.counts[kind] for kind in RATES})
        self.count("batches handed on in parts", self.world.ask(IN_PARTS))

    def check(self) -> None:
        """Count what does not add up: in each queue, and in all else but the one account of batches."""
        world = self.world
        world.auditor.end()
        accounts = [check_chain(world, self.items), check_notes(world, self.items)]
        accounts += [check(world, Expected()) for check in CHECKS if check is not check_batches]
        for account in accounts:
            for words in account:
                self.report(words)


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
