"""`rowferry worker` as it is typed: entries a second on this machine, with the CPU of each process counted apart."""

import os
from functools import partial
from typing import Any

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.timed import BATCH_SIZE, Launch, fill_queue, run_for
from bench.watch import Watch, between
from rowferry_lab.servers.postgres import EmbeddedPostgres

LATENCY_MS = 70
MOST_PER_SECOND = 26_000


def run(record: Record) -> None:
    """Measure `rowferry worker` as it is."""
    seconds = record.pick(40.0, short=5.0, reduced=30.0)
    record.settings |= {"latency_ms": LATENCY_MS, "seconds": seconds, "batch_size": BATCH_SIZE}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        contestants = {"rowferry worker": partial(measure, postgres, seconds)}
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=1))
    record.expect(f"entries/s, {os.cpu_count()} cores", record.median("rowferry worker", "entries_per_second"))
    for who in ("worker", "postgresql", "fake_s3"):
        what = f"cores used by {who.replace('_', ' ')}"
        record.expect(what, record.median("rowferry worker", f"cores_of_{who}"))
    record.expect("memory of all its processes", record.median("rowferry worker", "memory_mb"), unit=" MB")
    record.notes.append(
        "The S3 server is one process, and shares the machine with PostgreSQL and the worker's processes."
    )


def measure(postgres: EmbeddedPostgres, seconds: float) -> Figures:
    """Run it; the pace is that of the second half."""
    with fake_s3(LATENCY_MS) as server:
        watch = Watch(server, postgres_pid=postgres.pid, weighs=True)
        fill_queue(watch, int(seconds * MOST_PER_SECOND))
        seen = run_for(seconds, watch, [Launch(())])
    begin, end = between(seen.samples, seconds / 2, seconds)
    span = end.at - begin.at
    figures: dict[str, Any] = seen.figures(seconds / 2, seconds)
    return {
        **figures,
        "cores_of_postgresql": (end.postgres_cpu_seconds - begin.postgres_cpu_seconds) / span,
        "cores_of_fake_s3": (end.server_cpu_seconds - begin.server_cpu_seconds) / span,
        "memory_mb": max(sample.memory_mb for sample in seen.samples),
        "own_memory_mb": max(sample.own_memory_mb for sample in seen.samples),
    }
