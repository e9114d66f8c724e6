"""A whole switch-over, as docs/application.md tells it, with two versions of the application running."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import cycle
from signal import SIGINT, SIGKILL
from threading import Event, Thread

from support.entries.entry_table import FROM, TO
from support.processes.processes import wait_for
from torture.final_checks import Expected, check_attempts, check_locks, check_uploads
from torture.run import Run
from torture.scenarios.kills import WORKERS, count_deaths
from torture.switching.command import FINISHING, STAGES, CutoverEnd, cut_over
from torture.switching.final_look import look_at_the_end
from torture.switching.history import Entry, Histories, Table
from torture.switching.instance import INSERTS, ROLLED_BACK, Instance, keys_of
from torture.switching.version_auditor import VersionAuditor
from torture.switching.wrong_clock import WrongClock
from torture.workers import WorkerPool
from torture.world import World

WHAT = "a switch-over with two versions of an application, clocks 5 s apart, cutover interrupted at every stage"

INTERRUPTED, SHIFTED = "interruptions of cutover", "responses with a wrong clock"
FAULTS = frozenset(
    {
        "SIGKILL",
        INTERRUPTED,
        SHIFTED,
        ROLLED_BACK,
        "uploads",
        "rows and objects deleted",
        "objects replaced by the old version",
        "objects replaced by the new version",
    }
)

SEATS, INSTANCES = 3, 4
SKEW = timedelta(seconds=5)
KILL_EVERY = timedelta(seconds=5)
FLIP_WITHIN = timedelta(seconds=3)
"""All instances begin to run the new version within this time."""
WITHIN = timedelta(seconds=120)
LONGEST = timedelta(minutes=60)
HEALING = 3
"""So often entries are requeued and `--finish` is run again when it has left some, as it asks for."""
PLAN = {"migration": {"max_attempts": 50}}
TABLES = """
create table public.pictures (id bigint primary key, path text);
create table public.files (id bigint primary key, path text, updated_at timestamptz);
"""
MOVE = {"table": "public.pictures", "id": "id", "key": "path", "from": FROM, "to": TO}
STAY = {
    "table": "public.files",
    "id": "id",
    "key": "path",
    "from": "",
    "to": "",
    "rows": "stay",
    "changed": "updated_at",
}
KEYS: dict[Table, str] = {"pictures": FROM + "p{}.png", "files": "f/{}.bin"}


def torture(run: Run) -> None:
    """Switch with the clock of production ahead, then behind; in the short form one of the two."""
    signs = (1, -1)
    for sign in [run.random.choice(signs)] if run.short else signs:
        with (
            run.world(plan=PLAN) as world,
            WrongClock(world.s3.endpoint_url, sign * SKEW).running() as production,
        ):
            world.migration.plan["production"]["endpoint_url"] = production.endpoint_url
            switch(run, world)
            run.faults[SHIFTED] += production.responses


def switch(run: Run, world: World) -> None:
    entries, longest = (150, timedelta(seconds=3)) if run.short else (400, timedelta(seconds=20))
    histories = Histories()
    fill(world, histories, entries)
    instances = [Instance(world, histories, run.random.randrange(2**32), longest) for _ in range(INSTANCES)]
    auditor = VersionAuditor(world, histories, run.random.randrange(2**32))
    with auditor, world.workers(SEATS, "--parallel=8") as pool:
        with killing(run, world, pool):
            drive(run, world, auditor, instances, longest)
        stop(run, world, pool)
    account(run, world, auditor, histories, instances)


def drive(run: Run, world: World, auditor: VersionAuditor, instances: Sequence[Instance], longest: timedelta) -> None:
    """Start the application, switch it and end it; what `--finish` names then, the next one heals."""
    for instance in instances:
        instance.start()
    interrupt(run, world)
    require(world, cut_over(world))
    flip(run, auditor, instances)
    interrupt(run, world, "--finish")
    ended = require(world, cut_over(world, "--finish"))
    for instance in instances:
        instance.end(within=2 * longest)
    for _ in range(HEALING):
        if ended.status:
            world.rowferry("requeue", "--all")
            ended = require(world, cut_over(world, "--finish"))
    world.wait_until_done()


def fill(world: World, histories: Histories, count: int) -> None:
    """Add rows of both kinds with their objects, and some that nothing touches but rowferry, one of them large."""
    world.fill(count // 2)
    world.migration.execute(TABLES)
    world.migration.plan["entries"] += [MOVE, STAY]
    for table, pattern in KEYS.items():
        for number in range(1, count + 1):
            entry: Entry = (table, number)
            key, body = pattern.format(number), world.random.randbytes(200 + number)
            histories.begin(entry, body, keys_of(table, key))
            world.migration.legacy.put(key, body)
            world.migration.execute(INSERTS[table], (number, key))
            histories.acknowledge(entry, body, is_legacy=True)
    world.migration.write_plan()


def interrupt(run: Run, world: World, *arguments: str) -> None:
    """Interrupt `cutover` at each stage, in the short form at some; by a signal that it hears, or by SIGKILL."""
    signals = cycle(run.random.sample((SIGINT, SIGKILL), 2))
    for words, stage in list((FINISHING if arguments else STAGES).items())[run.short :: 1 + run.short]:
        run.say(f"cutover is interrupted {words}")
        ended = cut_over(world, *arguments, stage=stage, number=next(signals))
        run.faults[INTERRUPTED] += ended.was_interrupted


def stop(run: Run, world: World, pool: WorkerPool) -> None:
    """Stop the workers, once each of them hears signals."""
    wait_for(lambda: {row["pid"] for row in world.query(WORKERS)}.issuperset(pool.pids), deadline=WITHIN)
    pool.stop()
    count_deaths(run, world, pool)


def require(world: World, ended: CutoverEnd) -> CutoverEnd:
    """Report a cutover that ended otherwise than well, or with entries that are left."""
    if ended.status not in {0, 1}:
        world.auditor.report(f"cutover ended with {ended.status}: {ended.said}{ended.complained[-800:]}")
    return ended


def flip(run: Run, auditor: VersionAuditor, instances: Sequence[Instance]) -> None:
    """Let all instances run the new version, each at its own moment; return when no old one runs any more."""
    run.say("the application is switched")
    auditor.versions = ("old", "new")
    for instance in instances:
        instance.flip.set()
        time.sleep(FLIP_WITHIN.total_seconds() / len(instances))
    wait_for(lambda: all(instance.has_flipped or instance.fault for instance in instances), deadline=WITHIN)
    auditor.versions = ("new",)


@contextmanager
def killing(run: Run, world: World, pool: WorkerPool) -> Iterator[None]:
    """Kill a worker every KILL_EVERY until the block ends, but none that is still starting."""
    ended = Event()

    def kill() -> None:
        while not ended.wait(KILL_EVERY.total_seconds()):
            pool.kill_one(run.random, among={row["pid"] for row in world.query(WORKERS)})

    thread = Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def account(
    run: Run, world: World, auditor: VersionAuditor, histories: Histories, instances: Sequence[Instance]
) -> None:
    """Hold all objects against what the application has last written, and count what was done."""
    for instance in instances:
        run.faults.update(instance.done)
        if instance.fault is not None:
            raise instance.fault
    for version in ("old", "new"):
        if not auditor.reads[version]:
            world.auditor.report(f"nothing was read by the {version} version")
    run.audits += auditor.reads.total()
    orphans = {key for instance in instances for key in instance.orphans}
    for words in look_at_the_end(world, auditor, histories, orphans, run.faults):
        world.auditor.report(words)
    for check in (check_uploads, check_locks, check_attempts):
        for words in check(world, Expected()):
            world.auditor.report(words)
