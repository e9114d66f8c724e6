"""What PostgreSQL's server uses for a claim, a batch and an entry, with JIT as Debian's packages have it and without.

Where ROWFERRY_BENCH_BEFORE names another checkout, that one is measured beside this one. CPU is counted and not time.
"""

import os
from functools import partial
from pathlib import Path

import psycopg

from bench.environment import execute, fake_s3, running_postgres
from bench.record import Figures, Record
from bench.server_cpu import read_backend_cpu, read_server_cpu
from bench.trees import list_trees, run_in
from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.postgres_programs import find_postgres_binaries, read_version

CLAIM = "select id from rowferry.claim_batch(array['migrate'])"
FINISH = "update rowferry.batch_queue set status = 'DONE', migrated = entry_count where id = %s"
PREPARE = """
import sys
from bench.migration import make_rows, enqueue_rows
make_rows(int(sys.argv[1]))
enqueue_rows(sys.argv[2], sys.argv[2], int(sys.argv[3]))
"""
WORK = ("-m", "rowferry_cli", "worker", "--processes=1", "--until-empty", "--log-format=json")
LARGE_BATCH = 100


def run(record: Record) -> None:
    """Measure every PostgreSQL of this machine with every checkout in turn."""
    batches, entries = record.pick(400, short=20), record.pick(20_000, short=200)
    record.settings |= {"batches_of_one": batches, "entries_in_batches_of_100": entries, "workers": 1}
    contestants = {}
    for binaries in find_postgres_binaries():
        version = read_version(binaries)
        for name, tree in list_trees().items():
            contestants[f"PostgreSQL {version}, {name}"] = partial(measure, binaries, tree, batches, entries)
    record.interleave(contestants, repetitions=record.pick(3, short=1))
    for name in contestants:
        record.expect(f"CPU of a claim, {name}", record.median(name, "cpu_ms_per_claim"), unit=" ms")
    for name in contestants:
        record.expect(f"CPU of a batch of one, {name}", record.median(name, "cpu_ms_per_batch_of_one"), unit=" ms")


def measure(binaries: Path, tree: Path, batches: int, entries: int) -> Figures:
    """Return what a fresh server uses for claims alone, for batches of one, and for batches of a hundred."""
    with running_postgres(binaries=binaries) as postgres, fake_s3(0) as server:
        execute("drop schema rowferry cascade")
        run_in(tree, "-m", "rowferry_cli", "init")
        run_in(tree, "-c", PREPARE, str(batches), server.endpoint_url, "1")
        claims = measure_claims(batches)
        ones = migrate(postgres, tree, server.endpoint_url, batches, 1)
        hundreds = migrate(postgres, tree, server.endpoint_url, entries, LARGE_BATCH)
    return {
        "cpu_ms_per_claim": 1000 * claims,
        "cpu_ms_per_batch_of_one": 1000 * ones / batches,
        "cpu_ms_per_entry": 1000 * hundreds / entries,
    }


def measure_claims(batches: int) -> float:
    """Claim and finish all batches in a session with the server's own settings; return CPU seconds of one claim."""
    used = 0.0
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        for _ in range(batches):
            began = read_backend_cpu(connection.info.backend_pid)
            claimed = connection.execute(CLAIM).fetchone()
            used += read_backend_cpu(connection.info.backend_pid) - began
            assert claimed is not None
            connection.execute(FINISH, claimed)
            connection.commit()
    return used / batches


def migrate(postgres: EmbeddedPostgres, tree: Path, url: str, entries: int, batch_size: int) -> float:
    """Migrate so many rows by one worker and return the CPU seconds of the whole server meanwhile."""
    run_in(tree, "-c", PREPARE, str(entries), url, str(batch_size))
    began = read_server_cpu(postgres.pid)
    run_in(tree, *WORK)
    used = read_server_cpu(postgres.pid) - began
    ((left,),) = execute("select count(*) from pictures where path like 'image/%'")
    assert left == 0, f"{left} rows are still legacy"
    return used
