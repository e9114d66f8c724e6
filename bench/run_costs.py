"""What a hundred million entries take, and which curves are flat, by the last record of `make scale`: docs/speed.md."""

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

from bench.record import RESULTS
from bench.run_curves import GROWS, MEGABYTE, SWINGS, TITLES, Sample, judge

RECORD = RESULTS / "large_run.json"
SIZES = 100e6, 1000e6
"""Entries."""
PACES = 1000, 3500
"""Writes a second that a server may allow."""
UNITS = (5_400, 60, "minutes"), (172_800, 3_600, "hours"), (math.inf, 86_400, "days")
"""Seconds up to which a unit is used, its seconds, and its name."""


def compose_costs() -> str:
    """Return the tables; empty where there is no record."""
    return describe(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else ""


def describe(document: dict[str, Any]) -> str:
    """Return the tables for a record: its settings, and its samples."""
    settings, samples = document["settings"], [Sample(**sample) for sample in document["samples"]]
    return "\n".join(
        [
            tell_run(settings, samples),
            "",
            f"| | for each | {' | '.join(f'{entries / 1e6:,.0f} million entries' for entries in SIZES)} |",
            "| --- | --- | --- | --- |",
            *list_costs(settings, samples),
            "",
            "| what should stay flat | first third | last third | |",
            "| --- | --- | --- | --- |",
            *list_flat(samples),
        ]
    )


def tell_run(settings: dict[str, Any], samples: list[Sample]) -> str:
    """Return what was run, in a sentence."""
    option = "with `--immutable`, one request an entry" if settings["immutable"] else "with two requests an entry"
    cores = settings["machine"]["cores"]
    return (
        f"On {settings['when'][:10]}, {option}, {settings['workers']} workers migrated {settings['migrated']:,} of "
        f"{settings['entries']:,} entries in {samples[-1].minutes:.0f} minutes; {settings['kills']} workers were "
        f"killed, and no batch was at fault. Workers, PostgreSQL and the S3 server shared {cores} cores."
    )


def list_costs(settings: dict[str, Any], samples: list[Sample]) -> Iterator[str]:
    """Yield a row for each cost: of one entry, batch or attempt, and of all of them."""
    size, last = settings["batch_size"], samples[-1]
    batches, attempts = settings["entries"] / size, settings["migrated"] / size
    enqueue = settings["enqueue_cpu_seconds"] / settings["entries"]
    wal, cpu = (median(getattr(s, name) for s in samples) for name in ("wal_bytes_per_entry", "batch_cpu_ms"))
    on_disk = {
        "temporary files of enqueue": (settings["enqueue_temp_bytes"] / batches, "a batch"),
        "the queue on disk, indexes too": ((last.queue_mb + last.queue_indexes_mb) * MEGABYTE / batches, "a batch"),
        "the ledger of attempts": (last.attempts_mb * MEGABYTE / attempts, "an attempt"),
    }
    yield _row(f"batches of {size}", "", lambda entries: f"{entries / size:,.0f}")
    yield _row("enqueue, PostgreSQL's CPU", f"{1e6 * enqueue:.2g} µs an entry", lambda n: describe_seconds(n * enqueue))
    for what, (each, of) in on_disk.items():
        yield _row(what, f"{each:,.0f} bytes {of}", partial(_describe_all, each / size))
    yield _row("WAL", f"{wal:,.0f} bytes an entry", partial(_describe_all, wal))
    cost = f"{cpu:.0f} ms a batch"
    yield _row("PostgreSQL's CPU, claims and rows", cost, lambda n: describe_seconds(n / size * cpu / 1000))
    memory = max(sample.worker_memory_mb for sample in samples)
    yield _row("memory of a worker process, at most", "", lambda _: f"{memory:.0f} MB")
    for pace in PACES:
        yield _row(f"time at {pace:,} writes a second", "", lambda n, pace=pace: describe_seconds(n / pace))


def list_flat(samples: list[Sample]) -> Iterator[str]:
    """Yield a row for each curve that neither grows with the work nor swings with autovacuum."""
    for name, (first, last, _) in judge(samples).items():
        if name not in GROWS | SWINGS:
            ratio = last / first if first else 1.0
            yield f"| {TITLES[name]} | {_number(first, 3)} | {_number(last, 3)} | {ratio:.2f}x |"


def describe_seconds(seconds: float) -> str:
    """Return a time for reading: `3 minutes`, `1.3 hours`, `12 days`."""
    unit, name = next((unit, name) for until, unit, name in UNITS if seconds < until)
    return f"{_number(seconds / unit)} {name}"


def describe_bytes(count: float) -> str:
    """Return a size for reading: `72 MB`, `0.7 GB`."""
    return f"{count / 1e6:,.0f} MB" if count < 5e8 else f"{_number(count / 1e9)} GB"


def _describe_all(of_one: float, entries: float) -> str:
    return describe_bytes(of_one * entries)


def _number(number: float, digits: int = 2) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.{digits}g}"


def _row(what: str, each: str, of_all: Callable[[float], str]) -> str:
    return f"| {what} | {each} | {' | '.join(map(of_all, SIZES))} |"
