"""The instruments of the benches tell what is so: CPU, memory, paces, flat curves and exit statuses."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.benches.outage import find_regained
from bench.curves import Sample as Look
from bench.curves import judge, read_memory_mb, tell
from bench.environment import run_measured
from bench.server_cpu import list_processes, read_server_cpu
from bench.timed import Sample, rate

pytestmark = pytest.mark.soak

BURN = "import time\nwhile time.process_time() < 0.6: pass"
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
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")


def test_the_cpu_of_a_process_is_what_it_burnt() -> None:
    used = run_measured([sys.executable, "-c", BURN])
    assert 0.5 <= used.cpu_seconds < 5
    assert used.wall_seconds >= used.cpu_seconds * 0.9
    assert used.memory_mb > 1


def test_the_cpu_of_children_counts_as_well() -> None:
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}], check=True)"
    assert run_measured([sys.executable, "-c", parent]).cpu_seconds >= 0.5


def test_a_process_that_fails_is_told_with_its_last_words() -> None:
    with pytest.raises(AssertionError, match="ended with 3: for no reason"):
        run_measured([sys.executable, "-c", "import sys\nsys.stderr.write('for no reason')\nsys.exit(3)"])


@needs_proc
def test_the_cpu_of_living_children_is_seen() -> None:
    spin = f"{BURN}\nprint(1, flush=True)\ninput()"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {spin!r}], check=True)"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        processes = list_processes(process.pid)
        assert processes[0] == process.pid
        assert len(processes) == 2
        assert read_server_cpu(process.pid) >= 0.5
        assert read_memory_mb(process.pid) > 1
        process.stdin.write(b"\n")
    assert list_processes(process.pid) == []
    assert read_memory_mb(process.pid) == 0


@needs_proc
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


def make_sample(at: float, objects: int) -> Sample:
    return Sample(at=at, objects=objects, accepted={"one": objects}, refused=0)


def test_a_pace_is_that_between_the_nearest_samples() -> None:
    samples = [make_sample(at / 4, 10 * at) for at in range(41)]
    assert rate(samples, 2.1, 9.9) == pytest.approx(40)
    with pytest.raises(AssertionError, match="no samples"):
        rate(samples[:1], 2, 10)


def test_the_pace_is_regained_when_it_lasts_for_two_seconds() -> None:
    paces = [0] * 20 + [100] * 2 + [0] * 10 + [95] * 40
    objects = [sum(paces[:number]) for number in range(len(paces))]
    samples = [make_sample(at / 4, number) for at, number in enumerate(objects)]
    assert find_regained(samples, 5.0, 0.9 * 100 * 4) == pytest.approx(8.0, abs=0.25)
    assert find_regained(samples, 5.0, 1000.0) == samples[-1].at


def test_a_curve_that_rises_is_told_from_a_flat_one() -> None:
    samples = [Look(minute, minute, 5, 1000, *[1.0] * 9) for minute in range(1, 10)]
    assert judge(samples)["claim_cpu_ms"] == (2, 8, 4)
    told = {line.split()[0]: line.split("x   ")[1] for line in tell(samples)}
    assert told["claim_cpu_ms"] == "NOT FLAT"
    assert told["batch_cpu_ms"] == "flat"
    assert told["queue_mb"] == "grows with the work"


def test_a_pace_that_falls_is_not_flat() -> None:
    samples = [Look(minute, 1, 5, 1000 / minute, *[1.0] * 9) for minute in range(1, 10)]
    assert judge(samples)["entries_per_second"][2] == 4
