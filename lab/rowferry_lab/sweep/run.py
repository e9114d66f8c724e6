"""The runs of a sweep: for each, make the data anew, enqueue, let one worker migrate, and check the result."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
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
from rowferry_lab.servers.server_process import dismiss_guard, post_guard
from rowferry_lab.simulated.environment import Environment, start_environment
from rowferry_lab.simulated.images import SampleImage, draw_images
from rowferry_lab.simulated.prepare import prepare
from rowferry_lab.sweep.audit import Expected, find_problems, list_bucket
from rowferry_lab.sweep.grid import AUTO, Grid, Result, Setting, Trial
from rowferry_queues.migrate.spec import MIGRATE

REQUESTS_AN_ENTRY = 3
"""At the most, where nothing fails: a look, a copy, and the one copy that asks what the server honours."""
TIME_FACTOR = 10
"""How many times as long as the latency alone would take, a run may take."""
FEWEST_IN_FLIGHT = 4
"""Of a worker that finds the number by itself, on average."""
AT_LEAST = timedelta(seconds=60)
STOP_WITHIN = timedelta(seconds=10)


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


def run_sweep(environment: SweepEnvironment, grid: Grid, on_start: Callable[[Trial], None]) -> Generator[Result]:
    """Yield the result of each run as it ends. Raises RowferryError when one cannot be finished."""
    for trial in grid.order():
        on_start(trial)
        yield run_trial(environment, grid, trial)


def run_trial(environment: SweepEnvironment, grid: Grid, trial: Trial) -> Result:
    """Run one trial and return what it gave. Raises RowferryError when its worker fails or takes far too long."""
    connection, server, plan = environment.connection, environment.server, environment.plan
    server.set_latency(timedelta(0))
    prepare(connection, plan, grid.entries, seed=grid.seed, clean_production=True)
    expected = Expected.of(plan, _draw_again(plan, grid), list_bucket(environment.base, plan.legacy.bucket))
    enqueue(connection, plan, EnqueueRequest(MIGRATE, trial.setting.batch_size))
    server.set_latency(grid.latency)
    cpu_before = server.read_cpu_seconds()
    worker_cpu = _work(trial.setting, grid)
    server_cpu = timedelta(seconds=server.read_cpu_seconds() - cpu_before)
    server.set_latency(timedelta(0))
    problems = find_problems(connection, environment.base, plan, expected)
    duration = _read_span(connection, plan)
    return Result(trial, expected.legacy_entries, duration, worker_cpu, server_cpu, tuple(problems))


def compose_command(setting: Setting) -> list[str]:
    """Return the arguments of the `rowferry worker` that a setting stands for: one process, its parallelism fixed."""
    parallel = str(setting.parallel)
    fixed = [] if setting.parallel == AUTO else ["--parallel", parallel, "--min-parallel", parallel]
    return ["worker", "--processes", "1", *fixed]


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


def _work(setting: Setting, grid: Grid) -> timedelta:
    """Run one worker until the queue is empty and return the CPU time that it used."""
    before, bound = _read_children_cpu(), bound_run(grid, setting)
    with _started([*compose_command(setting), "--until-empty", "--log-format", "json"]) as process:
        try:
            _, words = process.communicate(timeout=bound.total_seconds())
        except subprocess.TimeoutExpired:
            raise RowferryError(f"A worker with {setting} was not done within {bound.total_seconds():.0f} s.") from None
    if process.returncode:
        last = (words.strip().splitlines() or ["it said nothing"])[-1]
        raise RowferryError(f"A worker with {setting} ended with exit status {process.returncode}: {last}")
    return _read_children_cpu() - before


@contextmanager
def _started(arguments: Sequence[str]) -> Generator[subprocess.Popen[str]]:
    """Start a process of rowferry; it is gone however the block ends, and however this process dies."""
    with ExitStack() as until:
        with hold_interrupts():
            process = subprocess.Popen(
                [sys.executable, "-m", "rowferry_cli", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ,
                start_new_session=True,  # Ctrl-C is for the sweep, which then stops its worker in order.
            )
            until.callback(_stop, process)
            until.callback(dismiss_guard, post_guard(process.pid, signal.SIGKILL, None))
        yield process


def _stop(process: subprocess.Popen[str]) -> None:
    """Stop the worker if it still runs. A second signal makes it release its batches at once; a slow one is killed."""
    if process.poll() is None:
        try:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)  # two alike may arrive as one
            process.communicate(timeout=STOP_WITHIN.total_seconds())
        except BaseException as error:
            process.kill()
            process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise


def _read_children_cpu() -> timedelta:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return timedelta(seconds=used.ru_utime + used.ru_stime)


def _read_span(connection: Connection, plan: Plan) -> timedelta:
    with translated_errors():
        row = fetch_one(connection, statement("sweep_duration"), {"migration": plan.name})
    return timedelta(seconds=row["seconds"] or 0)
