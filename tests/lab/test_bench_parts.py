"""The instruments of the benches tell what is so: CPU, paces, sizes and exit statuses."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.benches.outage import find_regained
from bench.environment import run_measured
from bench.page import write_number
from bench.record import tidy
from bench.server_cpu import list_processes
from bench.watch import Sample, curve, rate, read_cpu, read_sizes

pytestmark = pytest.mark.soak

BURN = "import time\nwhile time.process_time() < 0.6: pass"
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
        assert sum(map(read_cpu, processes)) >= 0.5
        resident, own = read_sizes(process.pid)
        assert resident >= own > 1
        process.stdin.write(b"\n")
    assert list_processes(process.pid) == []
    assert (read_cpu(process.pid), read_sizes(process.pid)) == (0, (0, 0))


def make_sample(at: float, objects: int) -> Sample:
    return Sample(at=at, objects=objects, megabytes=0, accepted={"one": objects}, refused=0)


def test_a_pace_is_that_between_the_nearest_samples() -> None:
    samples = [make_sample(at / 4, 10 * at) for at in range(41)]
    assert rate(samples, 2.1, 9.9) == pytest.approx(40)
    assert curve(samples)[:2] == [[1.0, 40.0], [2.0, 40.0]]
    with pytest.raises(AssertionError, match="no samples"):
        rate(samples[:1], 2, 10)


def test_the_pace_is_regained_when_it_lasts_for_two_seconds() -> None:
    paces = [0] * 20 + [100] * 2 + [0] * 10 + [95] * 40
    objects = [sum(paces[:number]) for number in range(len(paces))]
    samples = [make_sample(at / 4, number) for at, number in enumerate(objects)]
    assert find_regained(samples, 5.0, 0.9 * 100 * 4) == pytest.approx(8.0, abs=0.25)
    assert find_regained(samples, 5.0, 1000.0) == samples[-1].at


def test_numbers_are_cut_to_what_they_can_tell() -> None:
    assert tidy({"a": [1234.567, 0.123456, 7]}) == {"a": [1235, 0.1235, 7]}
    assert [write_number(number) for number in (1234.5, 3.0, 0.12345)] == ["1,234", "3", "0.123"]
