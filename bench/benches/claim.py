"""How long a claim takes with 16 workers at once: in an empty table, among two million batches, and beside a stranger.

Each worker is a process that calls the functions of the queue: claim, attempt, DONE. An open transaction keeps the
index entries of all batches finished since, and every claim walks past them: a stranger's, or that of a held batch.
pgqueuer takes and finishes as many jobs in the same way.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import psycopg
from psycopg import sql

from bench import baselines
from bench.environment import execute, leading_to, read_postgres_version, running_postgres
from bench.race import QUEUES, start_together
from bench.record import Figures, Record
from rowferry.db.connection import connect
from rowferry.db.schema import initialise
from rowferry_worker.batch.claim import claim_batch

WORKERS = 16
PGQUEUER = "pgqueuer"
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
FILL_PGQUEUER = """
insert into pgqueuer (priority, status, entrypoint) select 0, 'queued', 'bench' from generate_series(1, {})
"""


Beside = Callable[[str], AbstractContextManager[None]]


def run(record: Record) -> None:
    """Measure the claims of all cases in turn."""
    queued, each = record.pick(1_000_000, short=2_000, reduced=200_000), record.pick(300, short=5)
    workers = record.pick(WORKERS, short=2)
    record.settings |= {"waiting": queued, "done": queued, "workers": workers, "batches_of_each_worker": each}
    with running_postgres({"max_wal_size": "4GB"}):
        record.versions["postgresql"] = read_postgres_version()
        empty, full = (make_database(name) for name in ("small", "large"))
        fill(full, queued, queued)
        cases: dict[str, tuple[str, Beside]] = {
            "empty table": (empty, nullcontext),
            "full table": (full, nullcontext),
            "full, a stranger's transaction": (full, stranger),
            "full, a batch held throughout": (full, holding),
        }
        contestants: dict[str, Callable[[], Figures]] = {
            name: partial(measure, dsn, beside, workers, each, refilled=dsn == empty)
            for name, (dsn, beside) in cases.items()
        }
        if make_pgqueuer():
            contestants[PGQUEUER] = partial(measure_pgqueuer, workers, each)
        else:
            record.absent[PGQUEUER] = baselines.MISSING
        record.interleave(contestants, repetitions=record.pick(3, short=1))


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


def measure(dsn: str, beside: Beside, workers: int, each: int, *, refilled: bool) -> Figures:
    """Let the workers finish their batches at once; `refilled`: in a table that has no others."""
    if refilled:
        fill(dsn, 0, workers * each)
    execute(VACUUM, dsn)
    with beside(dsn):
        return race([sys.executable, "-m", "bench.race", "rowferry", str(each)], workers, each, dsn)


def make_pgqueuer() -> bool:
    """Install pgqueuer's tables in the database of the bench; return whether it is here."""
    command = baselines.compose("pgqueuer install", dsn=os.environ["DATABASE_URL"])
    if command is not None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return command is not None


def measure_pgqueuer(workers: int, each: int) -> Figures:
    """Let as many processes take and finish jobs of pgqueuer."""
    execute("truncate pgqueuer")
    execute(FILL_PGQUEUER.format(workers * each))
    execute("vacuum analyze pgqueuer")
    command = baselines.compose("pgqueuer", jobs=each)
    assert command is not None
    return race(command, workers, each, os.environ["DATABASE_URL"])


def race(command: list[str], workers: int, each: int, dsn: str) -> Figures:
    """Return the percentiles of what claims took, and how many jobs a second were finished."""
    seen = start_together([command] * workers, {**os.environ, "DATABASE_URL": dsn})
    assert len(seen.claims) == workers * each, f"{len(seen.claims)} of {workers * each} jobs were finished"
    cuts = statistics.quantiles(seen.claims, n=100, method="inclusive")
    percentiles = {f"claim_p{percent}_ms": 1000 * cuts[percent - 1] for percent in (50, 95, 99)}
    return {**percentiles, "finished_per_second": workers * each / seen.seconds}


@contextmanager
def stranger(dsn: str) -> Iterator[None]:
    """Hold a transaction with a snapshot open that has nothing to do with the queue."""
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select 1 from pg_class limit 1")
        yield
        connection.rollback()


@contextmanager
def holding(dsn: str) -> Iterator[None]:
    """Hold one batch claimed throughout."""
    with leading_to(dsn), connect("bench holds a batch") as connection:
        assert claim_batch(connection, QUEUES) is not None
        yield
        connection.rollback()
