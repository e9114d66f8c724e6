"""An application goes on: it inserts, renames, deletes and overwrites; some objects it rewrites during their copy."""

import time
from contextlib import ExitStack
from datetime import timedelta
from typing import ClassVar

from rowferry_worker.batch.second_look import FRESH_FOR
from support.entries.entry_table import FROM, TO
from torture.application import LONGEST_PAUSE, Application
from torture.audit_log import AuditLog
from torture.final_checks import Expected, read_named
from torture.legacy_record import read_many
from torture.rewriter import AFTER, DURING, Rewriter, SlowS3
from torture.scenarios.scenario import Scenario, Size
from torture.world import World, production_key_of

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


class Applications(Scenario):
    what = "the application inserts, renames and deletes rows, and overwrites and deletes objects, throughout"
    faults = frozenset({"rows inserted", "rows renamed", "rows deleted", "objects overwritten", "objects deleted"})
    short, long = Size(6, 400), Size(60, 4000)
    """Seconds that it goes on at least, and entries."""
    batch = 25
    writes_every: timedelta = LONGEST_PAUSE

    def fill(self) -> None:
        self.audit_log = AuditLog(self.world)
        super().fill()

    def cause(self) -> None:
        """Migrate under the running application; once it rests, passes must find all of its rows."""
        seed = self.run.random.randrange(2**32)
        with Application(self.world, self.world.oracle, seed, self.writes_every) as self.application:
            self.go_on()
        self.rest()
        if self.application.fault is not None:
            raise self.application.fault
        self.run.faults.update(self.application.done)
        self.make_passes()

    def go_on(self) -> None:
        """Return when the application has done all that it can do, for long enough, and workers half of their work."""
        began = time.monotonic()

        def is_enough() -> bool:
            self.say(f"{self.application.done.total()} writes")
            self.world.enqueue()
            time.sleep(1)
            is_late = time.monotonic() - began > self.times
            is_half = self.audit_log.moves > self.world.entries // 2
            return (is_late and is_half and self.has_written()) or self.application.fault is not None

        self.wait_for(is_enough)

    def has_written(self) -> bool:
        """Return whether the application has done each promised thing."""
        return all(self.application.done[kind] for kind in self.faults if kind.startswith(("rows", "objects")))

    def rest(self) -> None:
        """Do what is to be done when the application has come to its end."""

    def make_passes(self) -> None:
        """Enqueue until a pass finds no legacy row any more."""
        for _ in range(MOST_PASSES):
            self.world.enqueue()
            self.world.wait_until_done(self.within)
            self.decide()
            # An object that was deleted with its row is missing, until the batch is tried again and finds no row.
            self.world.rowferry("requeue", "--all")
            self.world.wait_until_done(self.within)
            self.count("passes")
            if not self.world.ask(LEGACY):
                return
        self.report(f"after {MOST_PASSES} passes {self.world.ask(LEGACY)} rows are still legacy")

    def decide(self) -> None:
        """Decide what workers leave to an operator."""

    def check(self) -> None:
        """Copy again what was overwritten after its copy, until verify finds all equal; hold the queue against the log.

        The three passes of verify account for all rows each, but that a batch in ERROR is done again by the next one
        instead of a new batch. The auditor must have ended: what it has read before the repair, it would now take for a
        violation.
        """
        world = self.world
        # S3 tells times in seconds: what was overwritten in the second of its copy is not seen to be older.
        world.rowferry("verify", "--repair", "--yes", statuses=(0, 1))
        again = world.ask(IN_ERROR)
        world.rowferry("verify", "--repair", "--overwrite", "--yes")
        self.count("objects repaired", world.ask(REPAIRED))
        world.rowferry("verify", "--deep", "--yes")
        self.verified = 3 * world.ask(ROWS) - again
        world.auditor.end()
        world.entries += self.application.done["rows inserted"]
        for row_id, body in self.application.bodies.items():
            world.oracle.expect(row_id, body)
        for words in self.audit_log.differences(self.application.done):
            self.report(words)
        super().check()

    def expect(self) -> Expected:
        return Expected(
            written=self.application.written,
            strays=lambda key: key.replace(TO, FROM, 1) in self.application.retired,
            sum_of_entries=self.audit_log.moves + self.audit_log.explained + self.verified,
        )


LATE = "objects rewritten while their row moved"
"""After the last look, if it was looked at: `rowferry verify --repair` has to find it."""
NAMED = "old objects named"
KEEP = """
create table public.move (id bigint primary key, at double precision not null);
create function public.note_move() returns trigger language plpgsql as $$
begin
    insert into public.move values (new.id, extract(epoch from clock_timestamp())) on conflict do nothing;
    return null;
end $$;
create trigger note_move after update on public.avatars for each row execute function public.note_move();
"""
MOVES = "select id, at from public.move"
LEGACY_IDS = "select id from public.avatars where path like 'image/%%'"
WRONG_REASON = "ProductionIsNewer"
"""What is said of an object that the application has written to production last: of an old one it is not true."""
SUM = "select sum(entry_count)::int from rowferry.batch_queue"


class Rewrite(Scenario):
    what = "the application overwrites objects in place throughout, while copies take from 50 ms to seconds"
    faults = frozenset({DURING, AFTER})
    forms, short_forms = ("move stream", "stay server", "move server", "stay stream"), 2
    short, long = Size(1, 150, seats=2), Size(1, 400, seats=2)
    longest = timedelta(minutes=60)
    batch = 25
    stay: ClassVar = {"to": FROM, "legacy_object": FROM, "production_object": TO, "rows": "stay"}
    wide = tuple(int(size * 1024 * 1024) for size in (0.02, 0.1, 0.3, 1, 2, 4, 6, 8, 16, 30, 50))
    """The sizes of some objects of each form in its long form, in bytes."""

    @property
    def stays(self) -> bool:
        return self.form.startswith("stay")

    def build(self, until: ExitStack) -> World:
        world = super().build(until)
        if self.stays:
            world.migration.plan["entries"][0] |= self.stay
        world.migration.execute(KEEP)
        return world

    def make_proxy(self, world: World) -> SlowS3:
        self.slowest = 2 if self.run.short else 5
        self.slow = SlowS3(world.s3.endpoint_url, self.run.random.randrange(2**32), self.slowest)
        return self.slow

    def fill(self) -> None:
        large, sizes = (2, ()) if self.run.short else (4, self.wide)
        self.world.fill(self.entries, large=large, sizes_bytes=sizes)
        self.rewriter = Rewriter(self.world, self.slow, self.run.random.randrange(2**32))
        self.world.enqueue(self.batch)

    def cause(self) -> None:
        """Migrate and repair under the application, which rests before each comparison."""
        with self.rewriter.at_work():
            self.finish()
        if self.stays:  # what was written since, the next pass copies
            self.world.enqueue(self.batch)
            self.finish()
        self.compare("migrate")
        with self.rewriter.at_work():
            self.repair()
        self.repair()
        self.compare("verify --repair")

    def repair(self) -> None:
        """Verify all objects, and copy again what is older than its legacy object."""
        self.world.rowferry("verify", "--repair", "--yes", "--processes=0")
        self.finish()

    def compare(self, after: str) -> None:
        """Hold production objects against the newest acknowledged bytes; report those that are old and not named so."""
        named = {number: reasons for (_, number), reasons in read_named(self.world).items()}
        moved_at = {row["id"]: row["at"] for row in self.world.query(MOVES)}
        newest = {n: version for n, version in self.rewriter.newest.items() if self.stays or n in moved_at}
        keys = {number: production_key_of(number) for number in newest}
        found = read_many(self.world.s3, self.world.migration.production.bucket, list(keys.values()))
        for number, version in newest.items():
            there = found[keys[number]]
            if there is not None and there.body == version.body:
                continue
            if named.get(number, set()) - {WRONG_REASON}:
                self.count(NAMED)
            elif after == "migrate" and not self.stays and self.is_late(number, moved_at[number]):
                self.count(LATE)
            else:
                side = "legacy" if version.is_legacy else "production"
                words = f"named {WRONG_REASON}" if number in named else "not named"
                self.report(f"after {after} object {number} is old, {words}; rewritten in {side}")

    def is_late(self, number: int, moved_at: float) -> bool:
        """Return whether a legacy object was rewritten when its row was about to move, or was moved.

        What was copied within FRESH_FOR before is not looked at again; looks, and what they copy again, take a while.
        """
        newest, fresh = self.rewriter.newest[number], FRESH_FOR.total_seconds() + self.slowest
        return newest.is_legacy and newest.acknowledged_at > moved_at - fresh

    def check(self) -> None:
        """Make the final checks; what is old and was named may be so."""
        self.world.auditor.end()
        self.named = {number for _, number in read_named(self.world)}
        for number, version in self.rewriter.newest.items():
            if number not in self.named:
                self.world.oracle.expect(number, version.body)
        self.run.faults.update(self.rewriter.done)
        super().check()

    def expect(self) -> Expected:
        legacy = {str(row["id"]) for row in self.world.query(LEGACY_IDS)}
        copied = {production_key_of(n) for n in (range(1, self.world.entries + 1) if self.stays else self.named)}
        return Expected(
            legacy_left=legacy if self.stays else {str(number) for number in self.named} & legacy,
            error=lambda batch: batch["failed"] + batch["conflict"] + batch["missing"] > 0,
            written=self.rewriter.written,
            strays=copied.__contains__,
            sum_of_entries=self.world.ask(SUM),
        )
