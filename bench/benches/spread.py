"""Two endpoints whose latency is spread, and small and large objects: one worker without a flag, and fixed settings.

Latency is lognormal, and one response in a thousand comes at once. Half of the objects have 20 kB, half have 4 MB.
"""

from functools import partial
from typing import Any

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.timed import BATCH_SIZE, Launch, fill_queue, run_for
from bench.watch import Watch, curve
from rowferry_lab.servers.server_process import find_free_port

LATENCY_MS, SIGMA, INSTANT_SHARE = 300, 0.6, 0.001
SIZES = "20000,4000000"
PARALLEL = (64, 128, 256, 512, 1024)
"""Objects in flight that are tried."""
LEAST_IN_FLIGHT = 16
MOST_PER_SECOND = 2_000


def run(record: Record) -> None:
    """Find the best fixed setting, and compare."""
    tried, seconds = record.pick(20.0, short=3.0, reduced=9.0), record.pick(60.0, short=5.0, reduced=24.0)
    record.settings |= {"latency_ms": LATENCY_MS, "sigma": SIGMA, "instant_share": INSTANT_SHARE, "sizes": SIZES}
    record.settings |= {"seconds_of_a_try": tried, "seconds": seconds, "batch_size": BATCH_SIZE}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        tries = {
            f"fixed, {parallel} in flight": partial(measure, record, parallel, tried)
            for parallel in record.pick(PARALLEL, short=PARALLEL[1:2], reduced=PARALLEL[1:])
        }
        record.interleave(tries, repetitions=1)
        best = max(tries, key=lambda name: record.median(name, "entries_per_second"))
        parallel = int(best.split()[1])
        record.settings["best_fixed"] = f"{parallel} in flight"
        contestants = {
            "defaults": partial(measure, record, None, seconds),
            "best fixed": partial(measure, record, parallel, seconds),
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))
    tell(record)


def tell(record: Record) -> None:
    """Hold the ratios against the targets."""
    names = "defaults", "best fixed"
    record.compare("defaults against the best fixed setting", "entries_per_second", *names, at_least=0.85)
    record.compare("the same, MB/s", "megabytes_per_second", *names)
    lowest = min(record.values("defaults", "least_in_flight_allowed"))
    record.expect("lowest limit of objects in flight, once begun", lowest, at_least=LEAST_IN_FLIGHT)
    record.expect("MB/s of the defaults", record.median("defaults", "megabytes_per_second"))
    record.expect("memory of the worker without a flag", record.median("defaults", "memory_mb"), unit=" MB")


def measure(record: Record, parallel: int | None, seconds: float) -> Figures:
    """Stream with one worker; the pace is that of the second half."""
    options = (f"--latency-sigma={SIGMA}", f"--latency-instant-share={INSTANT_SHARE}")
    port = find_free_port()
    worker = Launch.fixed(parallel) if parallel else Launch()
    with fake_s3(LATENCY_MS, *options, sizes=SIZES) as legacy, fake_s3(LATENCY_MS, *options, sizes=SIZES) as production:
        watch = Watch(production, legacy, weighs=True, metrics_url=f"http://127.0.0.1:{port}/metrics")
        fill_queue(watch, int(seconds * MOST_PER_SECOND))
        seen = run_for(seconds, watch, [worker.with_arguments(f"--metrics-port={port}")])
    limits = [[sample.at, sample.limit] for sample in seen.samples if sample.limit is not None]
    begun = [limit for _, limit in limits[next((i for i, (_, n) in enumerate(limits) if n >= LEAST_IN_FLIGHT), 0) :]]
    if parallel is None:
        record.series |= {"limit": limits, "entries_per_second": curve(seen.samples)}
    return {
        **seen.figures(seconds / 2, seconds),
        "least_in_flight_allowed": min(begun, default=0.0),
        "most_in_flight_allowed": max(begun, default=0.0),
        "memory_mb": max(sample.memory_mb for sample in seen.samples),
    }


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the limit and the pace of the defaults over time."""
    axis.plot(*zip(*result["series"]["entries_per_second"], strict=True), color="#56a64b", label="entries/s")
    axis.plot(*zip(*result["series"]["limit"], strict=True), color="#3274d9", label="objects in flight allowed")
    axis.axhline(LEAST_IN_FLIGHT, color="#e02f44", linestyle="--", linewidth=1)
    axis.set_xlabel("seconds")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=8)
