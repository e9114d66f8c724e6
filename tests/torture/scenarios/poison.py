"""Entries that kill their worker, rows that the database refuses, that others hold, or deadlock over."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from signal import SIGKILL
from threading import Event
from typing import Any, ClassVar

import psycopg

from support.processes.processes import meanwhile, wait_for
from torture.final_checks import Expected
from torture.scenarios.scenario import Scenario, Size
from torture.world import key_of, production_key_of

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


def array_of(ids: list[int]) -> str:
    return "{" + ",".join(map(str, ids)) + "}"


class Poison(Scenario):
    what = (
        "entries that kill the process, CHECK violations, a trigger that raises, locked rows, a deadlocking application"
    )
    faults = frozenset({*REASONS, "workers killed by an entry"})
    short, long = Size(1, 300), Size(4, 3000)
    within = timedelta(seconds=400)
    batch = 25
    arguments = ("--parallel=8", "--lock-timeout=0.5")
    settings: ClassVar = {"deadlock_timeout": "50ms"}

    def fill(self) -> None:
        """Make the entries poisonous, in the worker's process and in the database; let a first crew meet them."""
        super().fill()
        self.chosen = self.run.random.sample(range(1, self.entries + 1), 4 * self.times)
        kinds = ("killing", "checked", "raising", "locked")
        self.poison = {kind: sorted(self.chosen[number :: len(kinds)]) for number, kind in enumerate(kinds)}
        self.ids = sorted({*self.chosen} - {*self.poison["locked"]})
        self.seed_fault()
        workers = self.world.workers(self.seats, *self.arguments)
        with self.row_locks(), meanwhile(self.lock_backwards), workers as self.pool:
            self.wait_for_others(self.chosen)
            self.see_faults()
            self.end()

    def cause(self) -> None:
        self.world.rowferry("requeue", "--error-like=%lock%")

    def seed_fault(self) -> None:
        hook = self.world.folder / "hook"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(HOOK.format(keys=frozenset(map(key_of, self.poison["killing"]))))
        folders = [str(hook), os.environ.get("PYTHONPATH", "")]
        self.world.environment["PYTHONPATH"] = os.pathsep.join(folders).rstrip(os.pathsep)
        refuse = REFUSE
        for kind in ("checked", "raising"):
            refuse = refuse.replace("{" + kind + "}", array_of(self.poison[kind]))
        self.world.migration.execute(refuse)

    @contextmanager
    def row_locks(self) -> Iterator[None]:
        """Hold the locks of some rows until the block ends."""
        with psycopg.connect(self.world.migration.dsn) as holder:
            holder.execute("select from public.avatars where id = any(%s) for update", [self.poison["locked"]])
            yield
            holder.rollback()

    def lock_backwards(self, ended: Event) -> None:
        """Lock rows of claimed batches against the order of the workers, each batch once: attempts do for no more."""
        spared = [*self.chosen]
        with psycopg.connect(self.world.migration.dsn, autocommit=True) as connection:
            while not ended.wait(0.01):
                found = connection.execute(IN_HAND, [spared]).fetchone()
                if found is not None:
                    spared.extend(range(found[0], found[1] + 1))
                    with suppress(psycopg.errors.DeadlockDetected):
                        cross(connection, *found)

    def wait_for_others(self, ids: list[int]) -> None:
        """Return when all rows but these are migrated."""

        def are_done() -> bool:
            with suppress(psycopg.OperationalError):
                return self.world.ask(OTHERS_ARE_DONE, ids)
            return False

        self.say("waiting for all but the poison")
        self.wait_for(are_done)

    def see_faults(self) -> None:
        """Count the entries that have met their fault, as the workers have put it down; each must."""
        for fault, (kind, words) in REASONS.items():
            ids = self.poison[kind]
            with suppress(AssertionError):
                wait_for(lambda ids=ids, words=words: self.world.ask(MET, ids, words) == len(ids))
            self.count(fault, self.world.ask(MET, ids, words))
        self.count("deadlocks", self.world.ask(DEADLOCKS))

    def end(self) -> None:
        """Count the workers that the poison has killed, the last ones at their end; any other death is a violation."""
        statuses = self.pool.stop()
        killed = {pid for pid, status in zip(self.pool.pids, statuses, strict=True) if status == -SIGKILL}
        self.world.killed_pids |= killed
        self.count("workers killed by an entry", len(self.pool.deaths) + len(killed))
        for death in self.pool.deaths:
            if death.status != -SIGKILL:
                self.report(f"a worker died of something else: {death}: {self.pool.log_of(death.seat)[-800:]}")

    def check(self) -> None:
        """See that each poison has failed alone, and that nothing else did."""
        if (failed := self.world.ask(FAILED)) != len(self.ids):
            self.report(f"{failed} entries failed instead of {len(self.ids)}")
        super().check()

    def expect(self) -> Expected:
        """Return that these rows are left, each in ERROR, and perhaps copied."""
        copied = {production_key_of(number) for number in self.ids}
        return Expected(set(map(str, self.ids)), error=lambda batch: batch["failed"] > 0, strays=copied.__contains__)


def cross(connection: psycopg.Connection[Any], first: int, last: int) -> None:
    """Take the last row of a batch, and the first as soon as a worker, which has that one, waits for the last."""
    with connection.transaction():
        connection.execute("update public.avatars set path = path where id = %s", [last])
        give_up_at = time.monotonic() + 0.3
        while time.monotonic() < give_up_at and not connection.execute(WAITING).fetchone():
            time.sleep(0.005)
        connection.execute("update public.avatars set path = path where id = %s", [first])
