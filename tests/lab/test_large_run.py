"""`make scale` tells which of its curves is flat, and counts all CPU."""

import subprocess
import sys
import time
from dataclasses import fields

import pytest

from bench.run_costs import describe, describe_bytes, describe_seconds
from bench.run_curves import Sample, judge, tell
from bench.server_cpu import read_server_cpu

NAMES = [each.name for each in fields(Sample)]


def test_a_curve_that_rises_is_told_from_a_flat_one() -> None:
    samples = [Sample(minute, minute, 5, 1000, *[1.0] * 10) for minute in range(1, 10)]
    assert judge(samples)["claim_cpu_ms"] == (2, 8, 4)
    told = {line.split()[0]: line.split("x   ")[1] for line in tell(samples)}
    assert told["claim_cpu_ms"] == "NOT FLAT"
    assert told["batch_cpu_ms"] == "flat"
    assert told["queue_mb"] == "grows with the work"


def test_a_pace_that_falls_is_not_flat() -> None:
    samples = [Sample(minute, 1, 5, 1000 / minute, *[1.0] * 10) for minute in range(1, 10)]
    assert judge(samples)["entries_per_second"][2] == 4


def test_what_a_run_took_is_told_for_a_hundred_million_entries() -> None:
    settings = {"entries": 1_000_000, "batch_size": 500, "migrated": 500_000, "kills": 7, "workers": 4}
    settings |= {"when": "2026-11-26T18:00", "immutable": False, "machine": {"cores": 2}}
    settings |= {"enqueue_cpu_seconds": 2, "enqueue_temp_bytes": 5_000}
    curves = (1.0, 25.0, 1000.0, 400.0, 80.0, 9.0, 1.5, 0.5, 1.0, 1.0, 1.0, 0.0, 0.0)
    samples = [dict(zip(NAMES, (minute, *curves), strict=True)) for minute in range(1, 10)]
    told = describe({"settings": settings, "samples": samples})
    assert told.startswith("On 2026-11-26, with two requests an entry, 4 workers migrated 500,000 of 1,000,000 entries")
    rows = dict(line[2:].split(" | ", 1) for line in told.splitlines() if line.startswith("| "))
    assert rows["batches of 500"] == " | 200,000 | 2,000,000 |"
    assert rows["enqueue, PostgreSQL's CPU"] == "2 µs an entry | 3.3 minutes | 33 minutes |"
    assert rows["the queue on disk, indexes too"] == "1,049 bytes a batch | 210 MB | 2.1 GB |"
    assert rows["the ledger of attempts"] == "1,049 bytes an attempt | 210 MB | 2.1 GB |"
    assert rows["WAL"] == "400 bytes an entry | 40 GB | 400 GB |"
    assert rows["PostgreSQL's CPU, claims and rows"] == "25 ms a batch | 83 minutes | 14 hours |"
    assert rows["entries a second"] == "1,000 | 1,000 | 1.00x |"
    assert "the queue, MB" not in rows


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (describe_seconds(5_399), "90 minutes"),
        (describe_seconds(5_400), "1.5 hours"),
        (describe_seconds(172_800), "2 days"),
        (describe_bytes(4.9e8), "490 MB"),
        (describe_bytes(5e8), "0.5 GB"),
    ],
)
def test_times_and_sizes_are_told_in_units_that_fit(told: str, words: str) -> None:
    assert told == words


FORKS = """
import os, time
while True:
    if not os.fork():
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        os._exit(0)
    os.wait()
"""


def test_the_cpu_of_a_server_never_falls_while_its_children_end() -> None:
    read, until = [0.0], time.monotonic() + 100
    with subprocess.Popen([sys.executable, "-c", FORKS]) as server:
        try:
            while read[-1] < 1 and time.monotonic() < until:
                read.append(read_server_cpu(server.pid))
        finally:
            server.kill()
    assert read == sorted(read)
    assert read[-1] >= 1
