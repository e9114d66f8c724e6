"""Run one worker against the fake S3 server once, with chosen settings: for a closer look, or for a profiler.

    python -m bench.worker_speed [--entries 30000] [--batch-size 250] [--parallel 512] [--latency-ms 70]

Without --parallel it finds its pace by itself. Prints one JSON line. What `make bench` publishes comes from
bench/benches/.
"""

import argparse
import json
import os

from bench.environment import fake_s3, running_postgres
from bench.migration import enqueue_rows, fix_pace, make_rows, read_span, run_worker
from bench.record import tidy


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Migrate once and return the figures."""
    load = os.getloadavg()[0]
    with running_postgres(), fake_s3(options.latency_ms) as server:
        make_rows(options.entries)
        enqueue_rows(server.endpoint_url, server.endpoint_url, options.batch_size)
        used = run_worker(*(fix_pace(options.parallel) if options.parallel else ()))
        stats = server.read_stats()
        seconds = read_span(options.entries)
    return {
        "entries_per_second": options.entries / seconds,
        "cpu_ms_per_entry": 1000 * used.cpu_seconds / options.entries,
        "memory_mb": used.memory_mb,
        "fake_s3_cpu_ms_per_request": 1000 * stats["cpu_seconds"] / stats["requests"],
        "load_before": load,
    }


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=30_000, help="Rows to migrate")
    parser.add_argument("--batch-size", type=int, default=250, help="Entries of a batch")
    parser.add_argument("--parallel", type=int, help="Objects in flight; without it the worker finds its pace")
    parser.add_argument("--latency-ms", type=float, default=70, help="What the server waits before it answers")
    options = parser.parse_args()
    print(json.dumps({**vars(options), **tidy(measure(options))}))


if __name__ == "__main__":
    main()
