"""The whole migration as the least roles of docs/permissions.md, while workers are killed."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Event, Thread

from rowferry.db.grants import PURPOSES, Purpose
from support.postgres.roles import log_in, new_role
from support.processes.processes import wait_for
from support.processes.scrape import find_served_port, scrape, sum_of
from torture.final_checks import Expected
from torture.run import Run
from torture.scenarios.kills import PLAN, SEATS, migrate_under_kills
from torture.world import World

WHAT = "owner, enqueuer, worker, operator and grafana are roles with the least rights; SIGKILL at random moments"

OPERATED, READ = "commands of the operator", "readings of the exporter"
FAULTS = frozenset({"SIGKILL", OPERATED, READ})

COMMANDS: Mapping[Purpose, tuple[str, ...]] = {
    "enqueuer": ("plan", "estimate", "enqueue", "clean-uploads", "status", "queues", "verify"),
    "worker": ("worker",),
    "operator": ("errors", "watch", "requeue", "report", "pause", "resume"),
    "grafana": ("exporter",),
}
"""Whose role runs what, as docs/permissions.md has it; `init` alone is left to the owner of the database."""
OPERATOR = ("pause", "resume", "errors --entries", "watch --once", "report", "requeue --all")
STRANGERS = """
select distinct application_name || ' as ' || usename as stranger from pg_stat_activity
where application_name ~ '^rowferry (worker|exporter)' and datname = current_database() and usename <> all(%s)
"""
PAUSE = timedelta(seconds=0.5)
WITHIN = timedelta(seconds=120)


def torture(run: Run) -> None:
    """Migrate, look on, operate and verify as ordinary roles, while workers are killed."""
    kills, entries, seats = (3, 200, 2) if run.short else (60, 2000, SEATS)
    with run.world(plan=PLAN) as world, ExitStack() as until:
        roles = make_roles(world, until)
        for command in ("plan", "estimate", "status", "queues"):
            world.rowferry(command)
        port = until.enter_context(running_exporter(world))
        with (
            repeating(world, lambda: run.faults.update({OPERATED: operate(world)})),
            repeating(world, lambda: run.faults.update({READ: look(world, port, list(roles.values()))})),
        ):
            migrate_under_kills(run, world, kills, entries, seats)
        verify(world)
        world.run_final_checks(Expected(sum_of_entries=2 * world.entries))


def make_roles(world: World, until: ExitStack) -> dict[Purpose, str]:
    """Make a role for each purpose, with what it needs, that runs its commands from now on."""
    roles: dict[Purpose, str] = {purpose: until.enter_context(new_role(world.migration.dsn)) for purpose in PURPOSES}
    world.migration.write_plan()
    for purpose, role in roles.items():
        world.rowferry("init", "--grants", role, "--for", purpose, "--apply")
        world.logins |= dict.fromkeys(COMMANDS[purpose], log_in(world.migration, role))
    return roles


@contextmanager
def repeating(world: World, act: Callable[[], object]) -> Iterator[None]:
    """Do something again and again in a thread until the block ends, which lets it finish; report its exceptions."""
    ended = Event()

    def repeat() -> None:
        try:
            act()
            while not ended.wait(PAUSE.total_seconds()):
                act()
        except Exception as error:  # noqa: BLE001 - a thread's exception would be lost
            world.auditor.report(f"beside the migration: {error!r}")

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(WITHIN.total_seconds())


def operate(world: World) -> int:
    """Run each command of the operator once while batches wait; return how many that were."""
    if not world.waiting():
        return 0
    for command in OPERATOR:
        world.rowferry(*command.split(), statuses=(0, 1))  # 1: there are errors, or not all is done
    return len(OPERATOR)


def look(world: World, port: int, roles: list[str]) -> int:
    """Read the exporter's metrics, and report who is no such role; return 1 where it reaches the database, else 0."""
    for row in world.query(STRANGERS, roles):
        world.auditor.report(f"not a role with the least rights: {row['stranger']}")
    return round(sum_of(scrape(port), "rowferry_exporter_up"))


@contextmanager
def running_exporter(world: World) -> Iterator[int]:
    """Yield the port on which an exporter serves its metrics."""
    environment = {**os.environ, **world.migration.environment, "DATABASE_URL": world.logins["exporter"]}
    command = [sys.executable, "-m", "rowferry_cli", "exporter", "--port=0", "--log-format=json"]
    log = world.folder / "exporter.log"
    with log.open("wb") as output, subprocess.Popen(command, env=environment, stderr=output, stdout=output) as exporter:
        try:
            wait_for(lambda: '"serving metrics"' in log.read_text(), deadline=WITHIN, by=[exporter])
            yield find_served_port(next(line for line in log.read_text().splitlines() if '"serving metrics"' in line))
        finally:
            exporter.terminate()


def verify(world: World) -> None:
    """Compare all objects, byte by byte, as the enqueuer and the worker."""
    with world.workers(1, "--parallel=8") as pool:
        world.rowferry("verify", "--deep", "--yes", "--processes=0")
        world.wait_until_done()
        world.end_alive(pool, 1)
