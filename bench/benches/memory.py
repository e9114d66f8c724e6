"""The memory of one worker, looked at every second while it migrates 1,000,000 entries."""

import statistics
import threading
from pathlib import Path
from typing import Any

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.migration import enqueue_rows, fix_pace, make_rows, read_span, run_worker
from bench.record import Figures, Record

LATENCY_MS = 2
IN_FLIGHT = 512
BATCH_SIZE = 500
WARM_UP = 0.2
"""The part of the run that is left out of the fit."""
LEAST_SAMPLES = 5


def run(record: Record) -> None:
    """Migrate, watch, and fit a line."""
    entries = record.pick(1_000_000, short=2_000)
    every_seconds = record.pick(1.0, short=0.05)
    record.settings |= {"latency_ms": LATENCY_MS, "in_flight": IN_FLIGHT, "batch_size": BATCH_SIZE}
    record.settings |= {"entries": entries, "warm_up": WARM_UP, "sampled_every_seconds": every_seconds}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        record.interleave({"rowferry": lambda: migrate(record, entries, every_seconds)}, repetitions=1)
    record.expect(
        "memory of the worker over the run, at its largest",
        record.median("rowferry", "memory_mb"),
        at_most=150,
        unit=" MB",
    )
    what = "growth from the warm-up to the end, by a fitted line"
    record.expect(what, record.median("rowferry", "growth_mb"), at_most=5, unit=" MB")


def migrate(record: Record, entries: int, every_seconds: float) -> Figures:
    """Let one worker migrate all entries and return what its memory did; the samples go into the record."""
    make_rows(entries)
    sampler = Sampler(every_seconds)
    with fake_s3(LATENCY_MS) as server:
        enqueue_rows(server.endpoint_url, server.endpoint_url, BATCH_SIZE)
        used = run_worker(*fix_pace(IN_FLIGHT), on_start=sampler.watch)
        sampler.stop()
    record.series["memory_mb"] = sampler.samples
    return {
        "memory_mb": used.memory_mb,
        "growth_mb": fit_growth(sampler.samples),
        "entries_per_second": entries / read_span(entries),
        "cpu_ms_per_entry": 1000 * used.cpu_seconds / entries,
    }


class Sampler:
    """Looks at the resident size of a process at regular times, in a thread of its own, until it is gone."""

    def __init__(self, every_seconds: float) -> None:
        self._every_seconds = every_seconds
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.samples: list[list[float]] = []
        """[seconds since the start, MB] each."""

    def watch(self, pid: int) -> None:
        """Begin to look at this process."""
        self._thread = threading.Thread(target=self._look, args=(pid,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        assert self._thread is not None
        self._thread.join()

    def _look(self, pid: int) -> None:
        ticks = 0
        while not self._over.wait(self._every_seconds):
            ticks += 1
            size = read_resident_mb(pid)
            if size is not None:
                self.samples.append([ticks * self._every_seconds, size])


def read_resident_mb(pid: int) -> float | None:
    """Return the resident size of a process; None once it is gone, or where there is no /proc."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), None)


def fit_growth(samples: list[list[float]]) -> float:
    """Return the MB by which a line through the samples after the warm-up rises; 0 where there are too few."""
    settled = samples[int(len(samples) * WARM_UP) :]
    if len(settled) < LEAST_SAMPLES:
        return 0.0
    times, sizes = zip(*settled, strict=True)
    return statistics.linear_regression(times, sizes).slope * (times[-1] - times[0])


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the memory over the time; nothing where there is no /proc to read it from."""
    if not result["series"]["memory_mb"]:
        return
    times, sizes = zip(*result["series"]["memory_mb"], strict=True)
    axis.plot(times, sizes, color="#3274d9", linewidth=1.2)
    axis.axhline(150, color="#e02f44", linestyle="--", linewidth=1)
    axis.set_ylim(0, 170)
    axis.set_xlabel(f"seconds, {result['settings']['entries']:,} entries in all")
    axis.set_ylabel("MB resident")
