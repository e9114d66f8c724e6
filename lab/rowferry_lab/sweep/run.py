"""The runs of a sweep: for each, make the data anew, enqueue, let one worker migrate, and check the result."""

import resource
import signal
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, islice
from random import Random

from rowferry.db.connection import Connection, connect, fetch_one, translated_errors
from rowferry.db.schema import initialise
from rowferry.errors import RowferryError
from rowferry.interrupts import hold_interrupts
from rowferry.plan import Plan
from rowferry.plan_file import read_plan
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_lab.queries import statement
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.servers.server_process import ServerProcess
from rowferry_lab.simulated.environment import Environment, start_environment
from rowferry_lab.simulated.images import SampleImage, draw_images
from rowferry_lab.simulated.prepare import prepare
from rowferry_lab.sweep.audit import Expected, find_problems
from rowferry_lab.sweep.grid import AUTO, Grid, Result, Setting, Trial
from rowferry_queues.migrate.spec import MIGRATE

REQUESTS_AN_ENTRY = 3
"""At the most, where nothing fails: a look, a copy, and the one copy that asks what the server honours."""
TIME_FACTOR = 10
"""How many times as long as the latency alone would take, a run may take."""
FEWEST_IN_FLIGHT = 4
"""Of a worker that finds the number by itself, on average."""
AT_LEAST = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class SweepEnvironment:
    """The running servers of a sweep, and the plan between their buckets."""

    connection: Connection
    base: Environment
    server: FakeS3Server
    """The S3 server of the environment."""
    plan: Plan


@contextmanager
def open_environment() -> Generator[SweepEnvironment]:
    """Start a PostgreSQL and a fake S3 server; stop and remove both afterwards."""
    server = FakeS3Server()
    with start_environment(lambda: server) as base, connect("sweep", autocommit=True) as connection:
        initialise(connection)
        yield SweepEnvironment(connection, base, server, read_plan(base.plan_path))


def run_trial(environment: SweepEnvironment, grid: Grid, trial: Trial) -> Result:
    """Run one trial and return what it gave. Raises RowferryError when its worker fails or takes far too long."""
    connection, server, plan = environment.connection, environment.server, environment.plan
    server.set_latency(timedelta(0))
    prepare(connection, plan, grid.entries, seed=grid.seed, clean_production=True)
    expected = Expected.of(plan, _draw_again(plan, grid))
    enqueue(connection, plan, EnqueueRequest(MIGRATE, trial.setting.batch_size))
    server.set_latency(grid.latency)
    cpu_before = server.read_cpu_seconds()
    worker_cpu = _work(environment, trial.setting, bound_run(grid, trial.setting))
    server_cpu = timedelta(seconds=server.read_cpu_seconds() - cpu_before)
    server.set_latency(timedelta(0))
    problems = find_problems(connection, plan, expected)
    duration = _read_span(connection, plan)
    return Result(trial, expected.legacy_entries, duration, worker_cpu, server_cpu, tuple(problems))


def bound_run(grid: Grid, setting: Setting) -> timedelta:
    """Return how long the worker of a run may take at the most."""
    return AT_LEAST + TIME_FACTOR * REQUESTS_AN_ENTRY * grid.latency * grid.entries / (
        setting.parallel or FEWEST_IN_FLIGHT
    )


def _draw_again(plan: Plan, grid: Grid) -> list[SampleImage]:
    """Return the images that `prepare` has just made: the same seed draws the same."""
    (entries,) = plan.entries
    rng = Random(grid.seed)  # noqa: S311 - to be repeatable, not to be secret
    return list(islice(draw_images(entries, count(1), rng), grid.entries))


def _work(environment: SweepEnvironment, setting: Setting, bound: timedelta) -> timedelta:
    """Run one worker of one process until the queue is empty and return the CPU time that it used.

    It is gone however this ends, and however this process dies. The environment is temporary, so it is just killed.
    """
    number = str(setting.parallel)
    parallel = [] if setting.parallel == AUTO else ["--parallel", number, "--min-parallel", number]
    command = [sys.executable, "-m", "rowferry_cli", "worker", "--until-empty", "--processes", "1", *parallel]
    before = _read_children_cpu()
    with ExitStack() as until:
        with hold_interrupts():
            process = ServerProcess(command, folder=environment.base.folder, death_signal=signal.SIGKILL)
            until.callback(process.stop, signal.SIGKILL)
        status = process.wait(bound)
    if status is None:
        raise RowferryError(f"A worker with {setting} was not done within {bound.total_seconds():.0f} s.")
    if status:
        words = process.read_last_words()
        raise RowferryError(f"A worker with {setting} ended with exit status {status}: {words or 'it said nothing'}")
    return _read_children_cpu() - before


def _read_children_cpu() -> timedelta:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return timedelta(seconds=used.ru_utime + used.ru_stime)


def _read_span(connection: Connection, plan: Plan) -> timedelta:
    with translated_errors():
        row = fetch_one(connection, statement("sweep_duration"), {"migration": plan.name})
    return timedelta(seconds=row["seconds"] or 0)
