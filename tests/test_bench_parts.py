"""The instruments of the benches tell what is so: CPU, growth, shares of a profile, sizes and exit statuses."""

import subprocess
import sys
import time

import pytest

from bench.benches.memory import fit_growth, read_resident_mb
from bench.benches.profile import count_modules
from bench.environment import run_measured
from bench.page import write_number
from bench.processor import HAS_PROC, ThreadClock, read_cpu_seconds
from bench.record import tidy

pytestmark = pytest.mark.soak

BURN = "import time\nwhile time.process_time() < 0.6: pass"
needs_proc = pytest.mark.skipif(not HAS_PROC, reason="there is no /proc here")


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
        assert read_cpu_seconds(process.pid) >= 0.5
        process.stdin.write(b"\n")


@needs_proc
def test_a_clock_of_threads_knows_those_that_are_no_event_loop() -> None:
    clock = ThreadClock()
    run_measured([sys.executable, "-c", f"{BURN}\ntime.sleep(3)"], on_start=clock.watch)
    seconds = clock.stop()
    assert seconds["event_loop"] == 0
    assert seconds["other_threads"] >= 0.4


@needs_proc
def test_the_resident_size_is_that_of_the_process_until_it_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + 100
        while (size := read_resident_mb(process.pid)) is None or size < 1:
            assert time.monotonic() < deadline
        process.communicate(b"\n")
    assert read_resident_mb(process.pid) is None


def test_growth_is_that_of_a_line_after_the_warm_up() -> None:
    warming = [[float(second), second * 10.0] for second in range(20)]
    settled = [[float(second), 200 + second * 0.5] for second in range(20, 100)]
    assert fit_growth(warming + settled) == pytest.approx(0.5 * 79)


def test_a_sample_counts_for_the_innermost_module_that_is_known() -> None:
    lines = [
        "run (threading.py:9);step (rowferry_worker/slot.py:3);put (queue.py:4) 3",
        "run (threading.py:9);send (rowferry/http/connection.py:8) 4",
        "run (threading.py:9);sleep (queue.py:8) 1",
        "main (cli/rowferry_cli/__main__.py:1);_load (<frozen importlib._bootstrap>:1) 50",
    ]
    assert count_modules(lines) == {
        "rowferry/http/connection.py": 0.5,
        "rowferry_worker/slot.py": 0.375,
        "other Python": 0.125,
    }


def test_numbers_are_cut_to_what_they_can_tell() -> None:
    assert tidy({"a": [1234.567, 0.123456, 7]}) == {"a": [1235, 0.1235, 7]}
    assert [write_number(number) for number in (1234.5, 3.0, 0.12345)] == ["1,234", "3", "0.123"]
