"""Entries that kill the worker, rows that the database refuses, that others hold, or deadlock over."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from signal import SIGKILL
from threading import Event, Thread
from typing import Any

import psycopg

from support.entries.entry_table import FROM, TO
from support.processes.processes import wait_for
from torture.final_checks import Expected
from torture.run import Run
from torture.world import World, key_of

WHAT = "entries that kill the process, CHECK violations, a trigger that raises, locked rows, a deadlocking application"

FAULTS = frozenset(
    {"CHECK violations", "rows that a trigger refuses", "rows locked throughout", "workers killed by an entry"}
)

SEATS = 4
HOOK = """
import os, signal
from rowferry_queues.migrate import perform as migrate
POISON, copy_object = {keys!r}, migrate.copy_object
async def poisoned(s3, options, source_key, target_key):
    if source_key in POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    return await copy_object(s3, options, source_key, target_key)
migrate.copy_object = poisoned
"""
REFUSE = """
alter table public.avatars add constraint no_move check (id <> all('{checked}') or path not like 'avatar/%') not valid;
create function public.object_to_it() returns trigger language plpgsql as $$
begin
    raise exception 'row % stays', new.id;
end $$;
create trigger object_to_it before update on public.avatars for each row
when (new.id = any('{raising}') and new.path like 'avatar/%') execute function public.object_to_it();
"""
OTHERS_ARE_DONE = "select not exists (select from public.avatars where path like 'image/%%' and id <> all(%s)) as done"
IN_HAND = """
select min(e.id), max(e.id)
from public.avatars as e
where e.path like 'image/%%' and e.id <> all(%s) and exists (
    select from rowferry.batch_queue as q
    join rowferry.batch_attempt as a on a.batch_id = q.id and a.finished_at is null and q.status = 'INIT'
    where e.id between (q.payload ->> 'first')::bigint and (q.payload ->> 'last')::bigint
)
group by e.id / 25
having count(*) > 1
order by random() limit 1
"""
"""Two entries of a batch that a worker is at, and which have nothing else against them."""
WAITING = "select from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'rowferry%'"
DEADLOCKS = "select deadlocks::int from pg_stat_database where datname = current_database()"
REASONS = {
    "CHECK violations": ("checked", "%no_move%"),
    "rows that a trigger refuses": ("raising", "%stays%"),
    "rows locked throughout": ("locked", "%lock%"),
}
"""Which entries meet each fault, and what the database is then told to have said."""
MET = """
select count(distinct entry_id)::int as met from rowferry.entry_failure
where entry_id::bigint = any(%s) and error like %s
"""
FAILED = "select coalesce(sum(failed), 0)::int from rowferry.batch_queue where status = 'ERROR'"
WITHIN = timedelta(seconds=400)


@dataclass(frozen=True)
class Poison:
    """Ids of the entries that have something against them, by what it is."""

    killing: list[int]
    checked: list[int]
    raising: list[int]
    locked: list[int]

    @property
    def lasting(self) -> list[int]:
        """What can never be migrated."""
        return self.killing + self.checked + self.raising


def torture(run: Run) -> None:
    """Let everything happen at once; each fault must stay with its own entry."""
    entries, each = (300, 1) if run.short else (3000, 4)
    with run.world(settings={"deadlock_timeout": "50ms"}) as world:
        world.fill(entries, large=2)
        chosen = run.random.sample(range(1, entries + 1), 4 * each)
        poison = Poison(*(sorted(chosen[kind * each : (kind + 1) * each]) for kind in range(4)))
        seed_fault(world, poison)
        world.enqueue()
        with row_locks(world, poison.locked), deadlocking(world, poison), crew_of(run, world):
            run.say("waiting for all but the poison")
            wait_for(lambda: world.ask(OTHERS_ARE_DONE, poison.lasting + poison.locked), deadline=WITHIN)
            account(run, world, poison)
        with crew_of(run, world):
            world.rowferry("requeue", "--error-like=%lock%", statuses=(0,))
            run.say("waiting for what was locked")
            world.wait_until_done(WITHIN)
        account_at_the_end(world, poison)


def seed_fault(world: World, poison: Poison) -> None:
    """Make the entries poisonous: in the worker's process, and in the database."""
    hook = world.folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(HOOK.format(keys=frozenset(map(key_of, poison.killing))))
    world.environment["PYTHONPATH"] = os.pathsep.join([str(hook), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    sets = {name: "{" + ",".join(map(str, getattr(poison, name))) + "}" for name in ("checked", "raising")}
    refuse = REFUSE
    for name, ids in sets.items():
        refuse = refuse.replace("{" + name + "}", ids)
    with psycopg.connect(world.migration.dsn, autocommit=True) as connection:
        connection.execute(refuse.encode())


@contextmanager
def crew_of(run: Run, world: World) -> Iterator[None]:
    """Run workers, and count those that the poison kills; any other death is a violation."""
    with world.workers(SEATS, "--parallel=8", "--lock-timeout=0.5") as pool:
        yield
        statuses = pool.stop()
        killed = {pid for pid, status in zip(pool.pids, statuses, strict=True) if status == -SIGKILL}
        world.killed_pids |= killed
        run.faults["workers killed by an entry"] += len(pool.deaths) + len(killed)
        for death in pool.deaths:
            if death.status != -SIGKILL:
                world.auditor.report(f"a worker died of something else: {death}: {pool.log_of(death.seat)[-800:]}")


@contextmanager
def row_locks(world: World, ids: list[int]) -> Iterator[None]:
    """Hold the locks of some rows until the block ends."""
    with psycopg.connect(world.migration.dsn) as holder:
        holder.execute("select from public.avatars where id = any(%s) for update", [ids])
        yield
        holder.rollback()


@contextmanager
def deadlocking(world: World, poison: Poison) -> Iterator[None]:
    """Lock rows of claimed batches against the order of the workers, each batch once: no attempt would do for more."""
    ended, spared = Event(), poison.lasting + poison.locked

    def lock_backwards() -> None:
        with psycopg.connect(world.migration.dsn, autocommit=True) as connection:
            while not ended.wait(0.01):
                found = connection.execute(IN_HAND, [spared]).fetchone()
                if found is not None:
                    spared.extend(range(found[0], found[1] + 1))
                    with suppress(psycopg.errors.DeadlockDetected):
                        cross(connection, *found)

    thread = Thread(target=lock_backwards, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)


def cross(connection: psycopg.Connection[Any], first: int, last: int) -> None:
    """Take the last row of a batch, and the first as soon as a worker, which has that one, waits for the last."""
    with connection.transaction():
        connection.execute("update public.avatars set path = path where id = %s", [last])
        give_up_at = time.monotonic() + 0.3
        while time.monotonic() < give_up_at and not connection.execute(WAITING).fetchone():
            time.sleep(0.005)
        connection.execute("update public.avatars set path = path where id = %s", [first])


def account(run: Run, world: World, poison: Poison) -> None:
    """Count the entries that have met their fault, as the workers have put it down; each must."""
    for kind, (name, words) in REASONS.items():
        ids = getattr(poison, name)
        with suppress(AssertionError):
            wait_for(lambda ids=ids, words=words: world.ask(MET, ids, words) == len(ids))
        run.faults[kind] += world.ask(MET, ids, words)
    run.faults["deadlocks"] += world.ask(DEADLOCKS)


def account_at_the_end(world: World, poison: Poison) -> None:
    """See that each poison has failed alone, and that nothing else did."""
    if (failed := world.ask(FAILED)) != len(poison.lasting):
        world.auditor.report(f"{failed} entries failed instead of {len(poison.lasting)}")
    copied = {key_of(number).replace(FROM, TO, 1) for number in poison.lasting}
    world.run_final_checks(
        Expected(
            legacy_left={str(number) for number in poison.lasting},
            error=lambda batch: batch["failed"] > 0,
            strays=lambda key: key in copied,
        )
    )
