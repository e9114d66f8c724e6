"""Batches of one entry that have nothing to do, through claim and DONE, against pgqueuer and procrastinate.

All on one server with the same settings, each in a database of its own. A rowferry worker is the real process over rows
that are production already: it claims, records attempts, reads the rows, and writes verdicts. pgqueuer fetches 10 jobs
at once unless it is told otherwise, so it runs with 1 and with 10. rowferry claims one batch, and more of them as long
as they turn out to be idle.
"""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from typing import Any

from psycopg import sql

from bench.migration import enqueue_rows, make_rows
from bench.record import Figures, Record
from bench.stage import execute, read_postgres_version, running_postgres, stand_in
from bench.starting_gate import start_together
from rowferry.database import connect

PACKAGES = ("pgqueuer", "procrastinate")
FIGURE = "batches_per_second"
LONGEST_SECONDS = 300
ALIVE = "select count(*) as workers from rowferry.worker where stopped_at is null"
SPAN = """
select count(*)::int as batches, extract(epoch from max(finished_at) - min(started_at))::float as seconds
from rowferry.batch_queue
where status = 'DONE'
"""


def run(record: Record) -> None:
    """Measure everybody in turn, with one worker and with eight."""
    jobs = {
        "rowferry": record.pick(20_000, short=200),
        "functions": record.pick(2_000, short=50),
        "pgqueuer-10": record.pick(10_000, short=200),
        "pgqueuer-1": record.pick(1_500, short=50),
        "procrastinate-1": record.pick(600, short=20),
        "procrastinate-10": record.pick(600, short=20),
    }
    crews = record.pick((1, 8), short=(1, 2))
    record.settings |= {"jobs": jobs, "workers": crews, "entries_a_batch": 1}
    with running_postgres() as postgres, stand_in(0) as server:
        record.versions["postgresql"] = read_postgres_version()
        contestants = {
            "rowferry": partial(run_rowferry, server.url, jobs["rowferry"]),
            "functions": partial(run_functions, server.url, jobs["functions"]),
        } | {
            f"{package}-{size}": partial(run_rival, package, postgres.dsn(package), size, jobs[f"{package}-{size}"])
            for package in install_rivals(record)
            for size in (1, 10)
        }
        measures = {f"{name} × {n}": partial(measure, n) for name, measure in contestants.items() for n in crews}
        record.interleave(measures, repetitions=record.pick(3, short=1))
    expect(record)


def expect(record: Record) -> None:
    """Note the targets: rowferry against the better of each rival's ways."""
    for workers in record.settings["workers"]:
        who = "one worker" if workers == 1 else f"{workers} workers"
        ours = record.median(f"rowferry × {workers}", FIGURE)
        record.expect(f"idle batches of one, {who}", ours, unit="/s")
        for package in PACKAGES:
            if package not in record.absent:
                theirs = [record.median(f"{package}-{size} × {workers}", FIGURE) for size in (1, 10)]
                record.expect(f"the same against {package}, {who}", ours / max(theirs), at_least=1, unit="x")


def install_rivals(record: Record) -> Iterator[str]:
    """Make a database with its schema for each rival that is here, and yield their names."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            record.absent[package] = "not installed"
            continue
        record.versions[package] = metadata.version(package)
        execute(sql.SQL("create database {}").format(sql.Identifier(package)))
        dsn = os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{package}"
        ask_rival(package, dsn, "install")
        yield package


def ask_rival(package: str, dsn: str, *arguments: str) -> None:
    command = [sys.executable, "-m", f"bench.rivals.{package}_jobs", *arguments]
    subprocess.run(command, env={**os.environ, "DATABASE_URL": dsn}, check=True, timeout=LONGEST_SECONDS)


def run_rival(package: str, dsn: str, size: int, jobs: int, workers: int) -> Figures:
    """Let a rival's workers empty its queue."""
    ask_rival(package, dsn, "fill", str(jobs))
    command = [sys.executable, "-m", f"bench.rivals.{package}_jobs", "work", str(size)]
    return race([command] * workers, dsn, jobs)


def run_functions(url: str, batches: int, workers: int) -> Figures:
    """Call the functions of the queue, one batch at a time."""
    fill(url, batches)
    command = [sys.executable, "-m", "bench.bare_functions"]
    return race([command] * workers, os.environ["DATABASE_URL"], batches)


def race(commands: list[list[str]], dsn: str, jobs: int) -> Figures:
    seen = start_together(commands, {**os.environ, "DATABASE_URL": dsn})
    assert seen.done == jobs, f"{seen.done} of {jobs} jobs were done"
    return {FIGURE: seen.done / seen.seconds}


def run_rowferry(url: str, batches: int, workers: int) -> Figures:
    """Let real workers, which were started while the migration was paused, go through idle batches."""
    fill(url, batches)
    execute("update rowferry.migration set paused_at = now()")
    with started_workers(workers) as processes:
        execute("update rowferry.migration set paused_at = null")
        assert [process.wait(LONGEST_SECONDS) for process in processes] == [0] * workers
    with connect("bench", autocommit=True) as connection:
        span = connection.execute(SPAN.encode()).fetchone()
    assert span is not None
    assert span["batches"] == batches, f"{span['batches']} of {batches} batches are DONE"
    return {FIGURE: batches / span["seconds"]}


@contextmanager
def started_workers(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Yield workers that have all said that they live; end those that are left."""
    execute("truncate rowferry.worker")
    command = [sys.executable, "-m", "rowferry", "worker", "--until-empty", "--slots=1", "--log-format=json"]
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        give_up_at = time.monotonic() + LONGEST_SECONDS
        while execute(ALIVE)[0][0] < count:
            assert time.monotonic() < give_up_at, "the workers did not come about"
            time.sleep(0.05)
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def fill(url: str, batches: int) -> None:
    """Enqueue this many batches of one legacy row each, and make the rows production."""
    make_rows(batches)
    enqueue_rows(url, url, 1)
    execute("update pictures set path = 'avatar/' || substr(path, 7)")
    execute("vacuum analyze pictures, rowferry.batch_queue")


def draw(axis: Any, result: dict[str, Any]) -> None:
    """One group of bars for each number of workers."""
    names = list(dict.fromkeys(name.partition(" × ")[0] for name in result["summary"]))
    for offset, workers in zip((-0.2, 0.2), result["settings"]["workers"], strict=True):
        rates = [result["summary"][f"{name} × {workers}"][FIGURE]["median"] for name in names]
        label = "one worker" if workers == 1 else f"{workers} workers"
        bars = axis.bar([place + offset for place in range(len(names))], rates, 0.38, label=label)
        axis.bar_label(bars, fmt="{:,.0f}", fontsize=6)
    axis.set_xticks(range(len(names)), names, fontsize=7)
    axis.set_ylabel("idle batches of one a second", fontsize=8)
    axis.legend(fontsize=7, frameon=False)
