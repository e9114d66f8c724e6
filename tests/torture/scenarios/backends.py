"""Rows whose UPDATE kills the backend that runs it, and with it, for a moment, the whole of PostgreSQL."""

from datetime import timedelta

import psycopg

from support.entries.entry_table import FROM, TO
from support.processes.processes import wait_for
from torture.final_checks import Expected
from torture.run import Run
from torture.world import World, key_of

WHAT = "rows whose UPDATE kills its backend with SIGKILL, so that PostgreSQL restarts, over one worker"

FAULTS = frozenset({"backends killed by a row"})

SEATS = 1
"""Of several, one would take the batch up before the loser has said that it lives, and count a crash."""
MOST_RESTARTS = 25
"""For one such row, whatever the size of its batch: two losses that may be an outage's, then as for any poison."""
KILL_BACKEND = """
create function public.kill_backend() returns trigger language plpgsql as $$
begin
    execute format('copy (select 1) to program %L', 'kill -9 ' || pg_backend_pid());
    perform pg_sleep(10);
    return new;
end $$;
create trigger kill_backend before update on public.avatars for each row
when (new.id = any('{ids}') and new.path like 'avatar/%') execute function public.kill_backend();
"""
KILLED = "was terminated by signal 9"
"""What the server's own log says of it."""
OTHERS_ARE_DONE = "select not exists (select from public.avatars where path like 'image/%%' and id <> all(%s)) as done"
ERRORS_ALONE = "select array_agg(entry_count order by id) as entries from rowferry.batch_queue where status = 'ERROR'"
WITHIN = timedelta(seconds=600)


def torture(run: Run) -> None:
    """Let a few rows kill every backend that touches them; each must end up alone, in ERROR, after few restarts."""
    entries, culprits = (150, 1) if run.short else (1000, 3)
    with run.world() as world:
        world.fill(entries, large=1)
        ids = sorted(run.random.sample(range(1, entries + 1), culprits))
        seed_fault(world, ids)
        world.enqueue(5 if run.short else 25)  # Each halving has its losses, and each loss its wait.
        with world.workers(SEATS, "--parallel=8") as pool:
            run.say("waiting for all but the rows that kill")
            wait_for(lambda: are_others_done(world, ids), deadline=WITHIN)
            world.wait_until_done(WITHIN)
            world.end_alive(pool, SEATS)
        account(run, world, ids)


def seed_fault(world: World, ids: list[int]) -> None:
    """Have each update of these rows to a production key kill its own backend."""
    statement = KILL_BACKEND.replace("{ids}", "{" + ",".join(map(str, ids)) + "}")
    with psycopg.connect(world.migration.dsn, autocommit=True) as connection:
        connection.execute(statement.encode())


def are_others_done(world: World, ids: list[int]) -> bool:
    try:
        return world.ask(OTHERS_ARE_DONE, ids)
    except psycopg.OperationalError:
        return False


def account(run: Run, world: World, ids: list[int]) -> None:
    """Count the restarts, which must be few, and see that each culprit has failed alone."""
    log = world.postgres.folder / "server.log"
    killed = log.read_text(errors="replace").count(KILLED)
    run.faults["backends killed by a row"] += killed
    if killed > MOST_RESTARTS * len(ids):
        world.auditor.report(f"{len(ids)} rows have killed {killed} backends")
    if (alone := world.ask(ERRORS_ALONE)) != [1] * len(ids):
        world.auditor.report(f"the batches in ERROR have {alone} entries instead of one each")
    copied = {key_of(number).replace(FROM, TO, 1) for number in ids}
    world.run_final_checks(
        Expected(
            legacy_left={str(number) for number in ids},
            error=lambda batch: batch["failed"] > 0,
            strays=lambda key: key in copied,
        )
    )
