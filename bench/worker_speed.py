"""How fast one worker migrates against the stand-in: entries a second, CPU an entry, memory.

    python bench/worker_speed.py [--entries 30000] [--batch-size 100] [--parallel 512] [--slots 8] [--latency-ms 70]

PostgreSQL, the stand-in and the worker share this machine, so the figures are those of all three together; the
stand-in's own CPU is told beside them. Prints one JSON line.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rowferry import __version__
from rowferry.database import connect
from rowferry.demo.postgres import EmbeddedPostgres
from rowferry.plan import Entries, Plan, Side
from rowferry.schema import initialise
from rowferry_enqueue.enqueue import Request, enqueue

LONGEST_SECONDS = 600
ROWS = """
create table pictures (id bigint generated always as identity primary key, path text not null);
insert into pictures (path) select 'image/' || i || '.png' from generate_series(1, {}) as i;
analyze pictures;
"""
SPAN = """
select sum(migrated)::int as migrated, extract(epoch from max(finished_at) - min(started_at))::float as seconds
from rowferry.batch_queue
"""


@contextmanager
def stand_in(latency_ms: float) -> Iterator[str]:
    """Yield the URL of a running stand-in."""
    command = [sys.executable, str(Path(__file__).with_name("stand_in.py")), "--latency-ms", str(latency_ms)]
    with subprocess.Popen([*command, "--seconds", str(LONGEST_SECONDS)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        finally:
            process.kill()


def enqueue_rows(url: str, entries: int, batch_size: int) -> None:
    """Make a table of legacy rows and put them in the queue."""
    sides = Side("legacy", "legacy", url), Side("production", "production", url)
    plan = Plan("bench", *sides, (Entries("pictures", "id", "path", "image/", "avatar/"),))
    with connect("bench", autocommit=True) as connection:
        initialise(connection)
        for statement in filter(str.strip, ROWS.format(entries).split(";")):
            connection.execute(statement.encode())
        enqueue(connection, plan, Request(batch_size))


def run_worker(parallel: int, slots: int) -> dict[str, float]:
    """Run one worker process until the queue is empty; return its CPU seconds and its largest size in MB."""
    command = [sys.executable, "-m", "rowferry", "worker", "--until-empty", "--log-format=json"]
    command += [f"--parallel={parallel}", f"--slots={slots}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"the worker ended with {process.returncode}"
    unit = 1024 if platform.system() == "Linux" else 1024 * 1024
    return {"cpu_seconds": usage.ru_utime + usage.ru_stime, "memory_mb": usage.ru_maxrss / unit}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything once and return the figures."""
    with EmbeddedPostgres() as postgres, stand_in(options.latency_ms) as url:
        os.environ["DATABASE_URL"] = postgres.dsn()
        for side in ("LEGACY", "PRODUCTION"):
            os.environ |= {f"ROWFERRY_{side}_ACCESS_KEY_ID": "bench", f"ROWFERRY_{side}_SECRET_ACCESS_KEY": "bench"}
        enqueue_rows(url, options.entries, options.batch_size)
        began = time.monotonic()
        used = run_worker(options.parallel, options.slots)
        wall_seconds = time.monotonic() - began
        with connect("bench", autocommit=True) as connection, urllib.request.urlopen(f"{url}/_stats") as stats:
            span = connection.execute(SPAN.encode()).fetchone()
            served = json.load(stats)
    assert span is not None
    assert span["migrated"] == options.entries, f"{span['migrated']} of {options.entries} were migrated"
    return {
        **vars(options),
        "version": __version__,
        "entries_per_second": round(options.entries / span["seconds"]),
        "worker_cpu_ms_per_entry": round(1000 * used["cpu_seconds"] / options.entries, 3),
        "worker_memory_mb": round(used["memory_mb"]),
        "wall_seconds": round(wall_seconds, 1),
        "stand_in_cpu_ms_per_request": round(1000 * served["cpu_seconds"] / served["requests"], 3),
        "load_before": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=30_000)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--parallel", type=int, default=512)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--latency-ms", type=float, default=70)
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
