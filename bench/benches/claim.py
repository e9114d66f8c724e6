"""How long a claim takes with 16 workers at once: in an empty table, among two million batches, and beside a stranger.

Each worker is a process that calls the functions of the queue: claim, attempt, DONE. An open transaction keeps the
index entries of all batches finished since, and every claim walks past them. It may be a stranger's. It must not be
a worker's own, which is what the time budget is for: here one batch is held for the whole run, and then one after the
other for a moment each, as a budget has it.
"""

import os
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import Event, Thread
from typing import Any

import psycopg
from psycopg import sql

from bench.barrier import start_together
from bench.environment import execute, read_postgres_version, running_postgres
from bench.record import Figures, Record
from rowferry.db.connection import connect
from rowferry.db.schema import initialise
from rowferry_worker.batch.claim import claim_batch

WORKERS = 16
BUDGET_SECONDS = 1.0
"""Of 20 by default: the run is as much shorter."""
EMPTY, FULL = "empty table", "2,000,000 batches"
STRANGER, HELD, BUDGET = "with a stranger's transaction", "with a batch held throughout", "with batches held for 1 s"

FILL_DONE = """
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, migrated, attempts, run_after, started_at, finished_at,
    worker_id
)
select 1, 'migrate', '{}', 1, 'DONE', 1, 1, moment, moment, moment + i * interval '1 millisecond', 'h:1:x'
from generate_series(1, %s) as i, (select now() - interval '1 day' as moment) as m
"""
FILL_INIT = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, run_after)
select 1, 'migrate', '{}', 1, now() - interval '1 hour' from generate_series(1, %s)
"""
MIGRATION = "insert into rowferry.migration (name, plan) values ('bench', '{}')"
VACUUM = "vacuum analyze rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure"


def run(record: Record) -> None:
    """Measure the claims of all cases in turn."""
    queued, each = record.pick(1_000_000, short=2_000), record.pick(300, short=5)
    workers = record.pick(WORKERS, short=2)
    record.settings |= {"waiting": queued, "done": queued, "workers": workers, "batches_of_each_worker": each}
    with running_postgres({"max_wal_size": "4GB"}):
        record.versions["postgresql"] = read_postgres_version()
        empty, full = (make_database(name) for name in ("small", "large"))
        fill(full, queued, queued)
        samples: dict[str, list[float]] = {}

        def measure(name: str, dsn: str, beside: Callable[[str], Any]) -> Figures:
            if dsn == empty:
                fill(empty, 0, workers * each)
            execute(VACUUM, dsn)
            with beside(dsn):
                claims = race(dsn, workers, each)
            samples.setdefault(name, []).extend(claims)
            return describe(claims)

        cases: dict[str, tuple[str, Callable[[str], Any]]] = {
            EMPTY: (empty, nullcontext),
            FULL: (full, nullcontext),
            STRANGER: (full, stranger),
            HELD: (full, partial(holding, None)),
            BUDGET: (full, partial(holding, BUDGET_SECONDS)),
        }
        contestants = {name: partial(measure, name, *case) for name, case in cases.items()}
        record.interleave(contestants, repetitions=record.pick(3, short=1))
    record.series |= {name: trace(of_one) for name, of_one in samples.items()}
    p95 = {name: record.median(name, "claim_p95_ms") for name in cases}
    record.expect(f"p95 of a claim, {workers} workers, empty table", p95[EMPTY], unit=" ms")
    record.expect("the same among 2,000,000 batches", p95[FULL] / p95[EMPTY], at_most=2, unit="x")
    for name in (STRANGER, HELD, BUDGET):
        record.expect(f"the same {name}", p95[name] / p95[EMPTY], unit="x")


def make_database(name: str) -> str:
    """Make a database with rowferry's schema and one migration, and return its DSN."""
    execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    dsn = os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{name}"
    with leading_to(dsn), connect("bench", autocommit=True) as connection:
        initialise(connection)
    execute(MIGRATION, dsn)
    return dsn


def fill(dsn: str, done: int, waiting: int) -> None:
    """Leave this many batches in the queue."""
    execute("truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure", dsn)
    for statement, count in ((FILL_DONE, done), (FILL_INIT, waiting)):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("set session_replication_role = replica")
            connection.execute(statement.encode(), (count,))


def race(dsn: str, workers: int, each: int) -> list[float]:
    """Let the workers finish their batches at once, and return what each claim took, in seconds."""
    command = [sys.executable, "-m", "bench.bare_functions", str(each)]
    seen = start_together([command] * workers, {**os.environ, "DATABASE_URL": dsn})
    assert seen.done == workers * each, f"{seen.done} of {workers * each} batches were finished"
    return seen.samples


@contextmanager
def stranger(dsn: str) -> Iterator[None]:
    """Hold a transaction with a snapshot open that has nothing to do with the queue."""
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select 1 from pg_class limit 1")
        yield
        connection.rollback()


@contextmanager
def holding(seconds: float | None, dsn: str) -> Iterator[None]:
    """Hold one batch claimed throughout, or one after the other for so many seconds each."""
    over, ready = Event(), Event()

    def hold() -> None:
        with leading_to(dsn), connect("bench holds a batch") as connection:
            while not over.is_set():
                assert claim_batch(connection, ["migrate"]) is not None
                ready.set()
                over.wait(seconds)
                connection.rollback()

    holder = Thread(target=hold)
    holder.start()
    try:
        assert ready.wait(300), "no batch could be claimed"
        yield
    finally:
        over.set()
        holder.join()


@contextmanager
def leading_to(dsn: str) -> Iterator[None]:
    """Let DATABASE_URL lead there for a while."""
    before = os.environ["DATABASE_URL"]
    os.environ["DATABASE_URL"] = dsn
    try:
        yield
    finally:
        os.environ["DATABASE_URL"] = before


def describe(claims: list[float]) -> Figures:
    """Return the percentiles of what claims took."""
    cuts = statistics.quantiles(claims, n=100, method="inclusive")
    return {f"claim_p{percent}_ms": 1000 * cuts[percent - 1] for percent in (50, 95, 99)}


def trace(claims: list[float]) -> list[list[float]]:
    """Return the curve of the plot: milliseconds, and the share of claims that took no longer."""
    cuts = statistics.quantiles(claims, n=100, method="inclusive")
    return [[1000 * cut, (number + 1) / 100] for number, cut in enumerate(cuts)]
