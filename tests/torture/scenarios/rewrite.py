"""The application overwrites objects in place all the time: the newest bytes arrive, or the entry is named."""

from datetime import timedelta

import psycopg

from support.entries.entry_table import FROM, TO
from support.processes.processes import wait_for
from torture.final_checks import Expected
from torture.legacy_record import read_many
from torture.named import read_named
from torture.rewriter import AFTER, DURING, Rewriter
from torture.run import Run
from torture.slow_s3 import SlowS3
from torture.world import World, key_of

WHAT = "the application overwrites objects in place throughout, while copies take from 50 ms to seconds"

FAULTS = frozenset({DURING, AFTER})

SEATS = 2
FORMS = (("move", "stream"), ("move", "server"), ("stay", "stream"), ("stay", "server"))
SHORT = (("move", "stream"), ("stay", "server"))
STAY = {"to": FROM, "legacy_object": FROM, "production_object": TO, "rows": "stay"}
BATCH = 25
WIDE = tuple(int(size * 1024 * 1024) for size in (0.02, 0.1, 0.3, 1, 2, 4, 6, 8, 16, 30, 50))
"""The sizes of some objects of each form in its long form, in bytes."""
LONGEST = timedelta(minutes=60)
WITHIN = timedelta(seconds=300)
LATE = "objects rewritten while their row moved"
"""After the last copy of its batch, which the last look follows: `rowferry verify --repair` has to find it."""
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
LEGACY = "select id from public.avatars where path like 'image/%%'"
WRONG_REASON = "ProductionIsNewer"
"""What is said of an object that the application has written to production last: of an old one it is not true."""
SUM = "select sum(entry_count)::int from rowferry.batch_queue"


def torture(run: Run) -> None:
    """Migrate and verify under the application, with rows that move and rows that stay, by both copy methods."""
    for rows, transfer in SHORT if run.short else FORMS:
        run.say(f"rows {rows}, {transfer}")
        with (
            run.world(plan={"migration": {"transfer": transfer}}) as world,
            SlowS3(world.s3.endpoint_url, run.random.randrange(2**32), 2 if run.short else 5).running() as slow,
        ):
            world.migration.reach_through(slow.endpoint_url)
            if rows == "stay":
                world.migration.plan["entries"][0] |= STAY
            with psycopg.connect(world.migration.dsn, autocommit=True) as connection:
                connection.execute(KEEP.encode())
            entries, large = (150, 2) if run.short else (400, 4)
            world.fill(entries, large=large, sizes_bytes=() if run.short else WIDE)
            rewriter = Rewriter(world, slow, run.random.randrange(2**32))
            migrate(run, world, rewriter, stays=rows == "stay")
            account(world, rewriter, stays=rows == "stay")
            run.faults.update(rewriter.done)


def migrate(run: Run, world: World, rewriter: Rewriter, *, stays: bool) -> None:
    """Migrate and repair under the application, which rests before each comparison."""
    world.enqueue(BATCH)
    with world.workers(SEATS, "--parallel=8") as pool:
        with rewriter.at_work():
            finish(world)
        if stays:  # what was written since, the next pass copies
            world.enqueue(BATCH)
            finish(world)
        compare(run, world, rewriter, "migrate", stays=stays)
        with rewriter.at_work():
            repair(world)
        repair(world)
        compare(run, world, rewriter, "verify --repair", stays=stays)
        world.end_alive(pool, SEATS)


def repair(world: World) -> None:
    """Verify all objects, and copy again what is older than its legacy object."""
    world.rowferry("verify", "--repair", "--yes", "--processes=0")
    finish(world)


def finish(world: World) -> None:
    """Return when no batch waits any more; none rests for long before its next attempt."""

    def look() -> bool:
        world.make_due()
        return world.waiting() == 0

    wait_for(look, deadline=WITHIN)


def compare(run: Run, world: World, rewriter: Rewriter, after: str, *, stays: bool) -> None:
    """Hold production objects against the newest acknowledged bytes; report those that are old and not named so."""
    named = {number: reasons for (_, number), reasons in read_named(world).items()}
    moved_at = {row["id"]: row["at"] for row in world.query(MOVES)}
    keys = {production_key_of(number): number for number in rewriter.newest if stays or number in moved_at}
    found = read_many(world.s3, world.migration.production.bucket, list(keys))
    for key, number in keys.items():
        newest, there = rewriter.newest[number], found[key]
        if there is not None and there.body == newest.body:
            continue
        if named.get(number, set()) - {WRONG_REASON}:
            run.faults[NAMED] += 1
        elif after == "migrate" and not stays and is_late(rewriter, number, moved_at[number]):
            run.faults[LATE] += 1
        else:
            side, words = "legacy" if newest.is_legacy else "production", f"named {WRONG_REASON}"
            words = words if number in named else "not named"
            world.auditor.report(f"after {after} object {number} is old, {words}; rewritten in {side}")


def is_late(rewriter: Rewriter, number: int, moved_at: float) -> bool:
    """Return whether a legacy object was rewritten after the last copy of the batch that has moved its row."""
    newest, first = rewriter.newest[number], (number - 1) // BATCH * BATCH + 1
    copies = [rewriter.slow.written_at.get(key_of(each), []) for each in range(first, first + BATCH)]
    return newest.is_legacy and newest.acknowledged_at > max(at for each in copies for at in each if at <= moved_at)


def account(world: World, rewriter: Rewriter, *, stays: bool) -> None:
    """Make the final checks; what is old and was named may be so."""
    world.auditor.end()
    named = {number for _, number in read_named(world)}
    for number, version in rewriter.newest.items():
        if number not in named:
            world.oracle.expect(number, version.body)
    legacy = {str(row["id"]) for row in world.query(LEGACY)}
    copied = {production_key_of(number) for number in (range(1, world.entries + 1) if stays else named)}
    world.run_final_checks(
        Expected(
            legacy_left=legacy if stays else {str(number) for number in named} & legacy,
            error=lambda batch: batch["failed"] + batch["conflict"] + batch["missing"] > 0,
            written=rewriter.written,
            strays=copied.__contains__,
            sum_of_entries=world.ask(SUM),
        )
    )


def production_key_of(number: int) -> str:
    return key_of(number).replace(FROM, TO, 1)
