"""What an application feels that asks 200 times a second for rows of a table while eight workers move them."""

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import quantiles

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.timed import fill_queue, rate, run_for
from rowferry.db.connection import connect

SESSIONS, QUERIES_PER_SECOND = 4, 200
UPDATED = 5
"""One query of so many updates its row, which a worker may have locked; the others read theirs."""
WORKERS, WRITES_PER_SECOND, LATENCY_MS = 8, 1000, 70
"""As of a usual provider; what more is done per second costs the application cores, which it has here in common."""
READ = "select path from public.pictures where id = %s"
UPDATE = "update public.pictures set path = path where id = %s"


def run(record: Record) -> None:
    """Measure the application by itself, and beside the workers."""
    seconds = record.pick(60.0, short=6.0, reduced=30.0)
    record.settings |= {"seconds": seconds, "queries_per_second": QUERIES_PER_SECOND, "sessions": SESSIONS}
    record.settings |= {"workers": WORKERS, "writes_per_second": WRITES_PER_SECOND, "latency_ms": LATENCY_MS}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        contestants = {
            "no migration": lambda: measure(seconds, 0),
            f"{WORKERS} workers": lambda: measure(seconds, WORKERS),
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))


def measure(seconds: float, workers: int) -> Figures:
    """Return what the queries took, and the pace of the workers, which may be none."""
    with fake_s3(LATENCY_MS) as server:
        server.configure("limits", writes_per_second=WRITES_PER_SECOND, burst_seconds=1)
        rows = int(seconds * WRITES_PER_SECOND * 2)
        fill_queue(server, rows)
        began = time.monotonic()
        with using(rows) as (reads, updates):
            samples = run_for(seconds, server, [{}] * workers)
        elapsed = time.monotonic() - began
    every_ms = [1000 * each for each in (*reads, *updates)]
    percentiles = quantiles(every_ms, n=1000)
    return {
        "queries_per_second": len(every_ms) / elapsed,
        "p50_ms": percentiles[499],
        "p99_ms": percentiles[989],
        "longest_read_ms": 1000 * max(reads),
        "longest_update_ms": 1000 * max(updates),
        "entries_per_second": rate(samples, seconds / 2, seconds) if workers else 0.0,
    }


@contextmanager
def using(rows: int) -> Iterator[tuple[list[float], list[float]]]:
    """Ask the table from some sessions meanwhile; yield the seconds of reads and of updates, which grow."""
    reads, updates, is_over = list[float](), list[float](), threading.Event()

    def ask() -> None:
        with connect("application", autocommit=True) as connection:
            begin, every = time.monotonic(), SESSIONS / QUERIES_PER_SECOND
            for number in range(10**9):
                if is_over.wait(max(0.0, begin + number * every - time.monotonic())):
                    return
                asked = time.monotonic()
                connection.execute(UPDATE if number % UPDATED == 0 else READ, [random.randint(1, rows)])
                (updates if number % UPDATED == 0 else reads).append(time.monotonic() - asked)

    with ThreadPoolExecutor(SESSIONS) as sessions:
        asking = [sessions.submit(ask) for _ in range(SESSIONS)]
        try:
            yield reads, updates
        finally:
            is_over.set()
        for each in asking:
            each.result()
