"""`make scale`: enqueue a hundred million entries, migrate a fifth of them, kill a worker every ten seconds.

    python -m bench.large_run [--entries 100000000] [--migrate 20000000] [--minutes 120] [--workers 4] [--immutable]
        [--out FOLDER]

Everything that should stay flat is looked at throughout: see bench/curves.py. It ends by itself: when
so many entries are migrated, or after so many minutes. The entries take 90 bytes each on disk, their rows once more as
they are rewritten: 100 million need 40 GB with their WAL, and 20 million take an hour and a half on two cores without
other work.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.curves import Sampler, judge, tell
from bench.environment import execute, fake_s3, running_postgres
from bench.machine import describe_machine, list_versions
from bench.migration import enqueue_rows, make_rows
from bench.server_cpu import read_server_cpu

BATCH_SIZE = 500
SAMPLES = 60
LATENCY_MS = 20
SETTINGS = {"max_wal_size": "4GB", "shared_buffers": "512MB", "autovacuum_naptime": "15s"}
WORKER = (sys.executable, "-m", "rowferry_cli", "worker", "--processes=1", "--log-format=json")
TEMP = "select temp_bytes from pg_stat_database where datname = current_database()"
CRASHED = "select count(*) from rowferry.batch_queue where status = 'ERROR'"
UNBALANCED = """
select count(*) from rowferry.batch_queue
where status = 'DONE' and entry_count <> migrated + kept + changed + deleted + missing + conflict + failed
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="make scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--entries", type=int, default=100_000_000)
    parser.add_argument("--migrate", type=int, default=20_000_000, help="Stop after so many")
    parser.add_argument("--minutes", type=float, default=120, help="... or after so long")
    parser.add_argument("--kill-every", type=float, default=10, help="Seconds between two kills of a worker")
    parser.add_argument("--workers", type=int, default=4, help="The oldest of them is killed")
    parser.add_argument("--immutable", action="store_true", help="One request an entry: its object never changes")
    parser.add_argument("--out", type=Path, default=Path("build/scale"))
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run; return 1 where a batch is in ERROR or does not balance."""
    chosen = parse(arguments)
    with running_postgres(SETTINGS) as postgres, fake_s3(LATENCY_MS) as server:
        enqueued = enqueue(chosen, server.endpoint_url, postgres.pid)
        sampler = Sampler(postgres.pid)
        kills = migrate(chosen, sampler)
        done, faults = sampler.done(), sum(execute(query)[0][0] for query in (CRASHED, UNBALANCED))
    if not sampler.samples:
        print("ended before the second look: give it more minutes")
        return 1
    settings = {**describe(chosen), **enqueued, "migrated": done, "kills": kills}
    chosen.out.mkdir(parents=True, exist_ok=True)
    document = {"settings": settings, "first third, last third, how much worse": judge(sampler.samples)}
    (chosen.out / "scale.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{done:,} of {chosen.entries:,} entries migrated, {kills} workers killed, {faults} batches at fault")
    print("\n".join(tell(sampler.samples)))
    print(f"{chosen.out}, load {settings['load']:.1f}")
    return int(faults > 0)


def describe(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures are of."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "entries": chosen.entries,
        "batch_size": BATCH_SIZE,
        "workers": chosen.workers,
        "immutable": chosen.immutable,
        "latency_ms": LATENCY_MS,
        "load": os.getloadavg()[0],
        "machine": describe_machine(),
        "versions": list_versions(),
    }


def enqueue(chosen: argparse.Namespace, url: str, postgres_pid: int) -> dict[str, float]:
    """Make the rows and put them in the queue; say what that took, and return it."""
    make_rows(chosen.entries)
    ((temp,),), began, used = execute(TEMP), time.monotonic(), read_server_cpu(postgres_pid)
    enqueue_rows(url, url, BATCH_SIZE, immutable=chosen.immutable)
    seconds, cpu = time.monotonic() - began, read_server_cpu(postgres_pid) - used
    ((after,),) = execute(TEMP)
    words = f"{chosen.entries:,} entries enqueued: {seconds:.0f} s, {cpu:.0f} s of PostgreSQL's CPU"
    print(f"{words}, {(after - temp) / 1e6:.0f} MB of temporary files", flush=True)
    return {"enqueue_seconds": seconds, "enqueue_cpu_seconds": cpu, "enqueue_temp_bytes": after - temp}


def migrate(chosen: argparse.Namespace, sampler: Sampler) -> int:
    """Let workers run until the end, each killed worker replaced at once; return how many were killed."""
    began, kills = time.monotonic(), 0
    every = max(2.0, 60 * chosen.minutes / SAMPLES)
    workers = [start() for _ in range(chosen.workers)]
    kill_at, look_at = began + chosen.kill_every, began
    try:
        while time.monotonic() - began < 60 * chosen.minutes:
            if time.monotonic() >= kill_at:
                place, kills, kill_at = kills % len(workers), kills + 1, kill_at + chosen.kill_every
                workers[place].kill()
                workers[place].wait()
                workers[place] = start()
            if time.monotonic() >= look_at:
                look_at += every
                if (sample := sampler.take([worker.pid for worker in workers])) is not None:
                    words = f"{sample.minutes:6.1f} min  {sample.entries_per_second:8,.0f} entries/s"
                    print(
                        f"{words}  claim {sample.claim_cpu_ms:.2f} ms  batch {sample.batch_cpu_ms:.1f} ms", flush=True
                    )
                if sampler.done() >= chosen.migrate:
                    break
            time.sleep(0.2)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(60)
            worker.kill()
            worker.wait()
    return kills


def start() -> subprocess.Popen[bytes]:
    """Start a worker that knows PostgreSQL and the buckets' credentials from our environment."""
    return subprocess.Popen(WORKER, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
