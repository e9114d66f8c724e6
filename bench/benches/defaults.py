"""One worker process without a flag against the best fixed setting of a grid, at three latencies.

First each fixed setting runs once, for some seconds. Then the best of them and the defaults take turns.
"""

from functools import partial
from typing import Any

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.timed import BATCH_SIZE, Launch, fill_queue, run_for
from bench.watch import Watch, curve

LATENCIES_MS = (10, 70, 400)
PARALLEL = {10: (64, 128, 256, 512), 70: (256, 512, 1024, 2048), 400: (1024, 2048, 4096)}
"""Objects in flight, by latency."""
FIXED_BATCH_SIZE = 500
OTHER_BATCH_SIZES = (100, 1000)
"""Tried with the best number of objects in flight."""
MOST_PER_SECOND = 26_000
"""More than any of them reaches: that many rows a second are there."""

Setting = tuple[int, int]
"""Objects in flight and the batch size."""


def run(record: Record) -> None:
    """Find the best fixed setting of each latency, and compare."""
    latencies = record.pick(LATENCIES_MS, short=(10,))
    tried, seconds = record.pick(12.0, short=3.0, reduced=6.0), record.pick(30.0, short=4.0, reduced=14.0)
    repetitions = record.pick(3, short=1, reduced=2)
    record.settings |= {"seconds_of_a_try": tried, "seconds": seconds, "default_batch_size": BATCH_SIZE}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        best = {latency: find_best(record, latency, tried) for latency in latencies}
        for latency, setting in best.items():
            contestants = {
                f"defaults, {latency} ms": partial(measure, record, latency, None, seconds),
                f"best fixed, {latency} ms": partial(measure, record, latency, setting, seconds),
            }
            record.interleave(contestants, repetitions=repetitions)
            record.settings[f"best_fixed_at_{latency}_ms"] = f"{setting[0]} in flight, batches of {setting[1]}"
    tell(record, latencies)


def tell(record: Record, latencies: tuple[int, ...]) -> None:
    """Hold the ratios against the target."""
    for latency in latencies:
        names = f"defaults, {latency} ms", f"best fixed, {latency} ms"
        what = f"defaults against the best fixed setting, {latency} ms"
        record.compare(what, "entries_per_second", *names, at_least=0.9)
        record.compare(f"{what}, from the first object on", "entries_per_second_from_the_start", *names)
        record.expect(f"entries/s of the defaults, {latency} ms", record.median(names[0], "entries_per_second"))
        record.compare(f"CPU an entry, {what}", "cpu_ms_per_entry", *names)


def find_best(record: Record, latency: int, seconds: float) -> Setting:
    """Return the fastest fixed setting: first the best number in flight, then the best batch size."""
    tries = record.pick(PARALLEL[latency], short=PARALLEL[latency][-2:])
    paces: dict[Setting, float] = {}
    for parallel in tries:
        paces[parallel, FIXED_BATCH_SIZE] = try_once(record, latency, (parallel, FIXED_BATCH_SIZE), seconds)
    parallel, _ = max(paces, key=lambda setting: paces[setting])
    for batch_size in record.pick(OTHER_BATCH_SIZES, short=()):
        paces[parallel, batch_size] = try_once(record, latency, (parallel, batch_size), seconds)
    return max(paces, key=lambda setting: paces[setting])


def try_once(record: Record, latency: int, setting: Setting, seconds: float) -> float:
    """Return the pace of a fixed setting."""
    name = f"fixed, {latency} ms, {setting[0]} in flight, batches of {setting[1]}"
    record.interleave({name: partial(measure, record, latency, setting, seconds)}, repetitions=1)
    return record.median(name, "entries_per_second")


def measure(record: Record, latency: int, setting: Setting | None, seconds: float) -> Figures:
    """Run one worker with a fixed setting, or with none; the pace is that of the second half."""
    worker, batch_size = (Launch(), BATCH_SIZE) if setting is None else (Launch.fixed(setting[0]), setting[1])
    with fake_s3(latency) as server:
        watch = Watch(server)
        fill_queue(watch, int(seconds * MOST_PER_SECOND), batch_size)
        seen = run_for(seconds, watch, [worker])
    if setting is None:
        record.series[f"{latency} ms"] = curve(seen.samples)
    return seen.figures(seconds / 2, seconds)


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the pace of the defaults beside that of the best fixed setting, by latency."""
    summary = result["summary"]
    latencies = [name.split(", ")[1] for name in summary if name.startswith("defaults")]
    for place, (kind, colour) in enumerate((("defaults", "#56a64b"), ("best fixed", "#8e8e8e"))):
        paces = [summary[f"{kind}, {latency}"]["entries_per_second"] for latency in latencies]
        medians = [pace["median"] for pace in paces]
        spread = [[p["median"] - p["min"] for p in paces], [p["max"] - p["median"] for p in paces]]
        at = [number + 0.38 * place for number in range(len(latencies))]
        axis.bar(at, medians, width=0.36, yerr=spread, color=colour, capsize=3, label=kind)
        for x, median in zip(at, medians, strict=True):
            axis.text(x, median / 2, f"{median:,.0f}", ha="center", fontsize=7)
    axis.set_xticks([number + 0.19 for number in range(len(latencies))], latencies)
    axis.set_ylabel("entries/s of one worker")
    axis.legend(frameon=False, fontsize=8)
