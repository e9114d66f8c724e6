"""Where the worker's Python time goes while it copies: samples of the thread that holds Python's lock, by module."""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.migration import WORKER, enqueue_rows, fix_pace, make_rows, read_span
from bench.record import Figures, Record

LATENCY_MS = 70
IN_FLIGHT = 512
BATCH_SIZE = 250
SAMPLES_A_SECOND = 200
SHOWN = 14
LONGEST_SECONDS = 300
KNOWN = ("rowferry", "rowferry_worker", "psycopg", "prometheus_client")
"""Packages that a sample is counted for: what they call in the standard library is theirs."""
BEGINNING = ("importlib", "MigrationContextCache._build", "load_service_model", "_calm_garbage_collector")
"""Words of stacks that belong to the start of a worker."""


def run(record: Record) -> None:
    """Let one worker migrate under py-spy; nothing where py-spy is not here or may not look into a process."""
    program = Path(sys.executable).with_name("py-spy")
    if not program.exists():
        record.absent["py-spy"] = "not installed: `make bench` installs it from requirements/bench.txt"
        return
    entries = record.pick(40_000, short=500)
    record.settings |= {"latency_ms": LATENCY_MS, "entries": entries, "in_flight": IN_FLIGHT, "batch_size": BATCH_SIZE}
    record.settings |= {"samples_a_second": SAMPLES_A_SECOND}
    with running_postgres(), tempfile.TemporaryDirectory() as folder:
        record.versions["postgresql"] = read_postgres_version()
        samples = Path(folder) / "samples"
        failure = look(program, samples, [sys.executable, "-c", "import time; time.sleep(1)"])
        if failure:
            record.absent["py-spy"] = f"it cannot look into a process here: {failure[:200]}"
            return
        record.interleave({"whole run": lambda: migrate(program, samples, entries)}, repetitions=1)
        record.interleave({"by module": lambda: count_modules(samples.read_text().splitlines())}, repetitions=1)
    held = record.median("whole run", "lock_held_share")
    record.expect("share of the time in which somebody holds Python's lock", held)
    record.notes.append("A share is that of the samples in which somebody held Python's lock, without the start.")


def look(program: Path, samples: Path, command: Sequence[str]) -> str:
    """Run a command under the profiler, which writes one line a distinct stack; return why that failed, or nothing."""
    options = ["record", "--gil", "--format=raw", f"--rate={SAMPLES_A_SECOND}", f"--output={samples}"]
    done = subprocess.run(
        [str(program), *options, "--", *command], capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    return "" if done.returncode == 0 else " ".join(done.stderr.split())


def migrate(program: Path, samples: Path, entries: int) -> Figures:
    """Migrate under the profiler."""
    make_rows(entries)
    with fake_s3(LATENCY_MS) as server:
        enqueue_rows(server.endpoint_url, server.endpoint_url, BATCH_SIZE)
        failure = look(program, samples, [*WORKER, *fix_pace(IN_FLIGHT)])
        assert not failure, failure[-2000:]
    seconds = read_span(entries)
    seen = sum(number for _, number in read_stacks(samples.read_text().splitlines()))
    return {"entries_per_second": entries / seconds, "lock_held_share": seen / SAMPLES_A_SECOND / seconds}


def read_stacks(lines: Iterable[str]) -> list[tuple[list[str], int]]:
    """Return the stacks, outermost frame first, and how often each was seen; without those of the start."""
    stacks: list[tuple[list[str], int]] = []
    for line in lines:
        words, _, number = line.rpartition(" ")
        if not any(beginning in words for beginning in BEGINNING):
            stacks.append((words.split(";"), int(number)))
    return stacks


def count_modules(lines: Iterable[str]) -> Figures:
    """Return the share of the samples that belongs to each module, the largest first."""
    counter: Counter[str] = Counter()
    for frames, number in read_stacks(lines):
        counter[name_module(frames)] += number
    total = sum(counter.values()) or 1
    return {module: number / total for module, number in counter.most_common(SHOWN)}


def name_module(frames: list[str]) -> str:
    """Return the innermost file of KNOWN in a stack; a frame reads `send (rowferry_worker/slot.py:12)`."""
    for frame in reversed(frames):
        path = frame.rpartition("(")[2].partition(":")[0]
        if path.split("/")[0] in KNOWN:
            return path
    return "other Python"


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the share of each module."""
    shares = {name: one["median"] for name, one in result["summary"]["by module"].items() if name != "load_before"}
    names = sorted(shares, key=lambda name: shares[name])
    axis.barh(names, [100 * shares[name] for name in names], color="#3274d9")
    axis.tick_params(axis="y", labelsize=7)
    axis.set_xlabel("% of the samples in which somebody held Python's lock")
