"""A whole sweep: its servers, its runs, and what became of them, one by one."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rowferry.db.connection import connect
from rowferry.db.schema import initialise
from rowferry.plan_file import read_plan
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.simulated.environment import set_stage
from rowferry_lab.sweep.grid import Grid, Trial
from rowferry_lab.sweep.run import Arena, run_trial
from rowferry_lab.sweep.summary import Result


@contextmanager
def open_arena() -> Generator[Arena]:
    """Start a PostgreSQL and a simulated S3 server of our own; stop and remove both in the end."""
    server = FakeS3Server()
    with set_stage(lambda: server) as stage, connect("sweep", autocommit=True) as connection:
        initialise(connection)
        yield Arena(connection, stage, server, read_plan(stage.plan_path))


def run_sweep(arena: Arena, grid: Grid, on_start: Callable[[Trial], None]) -> Generator[Result]:
    """Yield the result of each run as it ends. Raises RowferryError when one cannot be finished."""
    for trial in grid.order():
        on_start(trial)
        yield run_trial(arena, grid, trial)
