"""`make scale` tells which of its curves is flat, and counts all CPU."""

import subprocess
import sys
import time

from bench.run_curves import Sample, judge, tell
from bench.server_cpu import read_server_cpu


def test_a_curve_that_rises_is_told_from_a_flat_one() -> None:
    samples = [Sample(minute, minute, 5, 1000, *[1.0] * 9) for minute in range(1, 10)]
    assert judge(samples)["claim_cpu_ms"] == (2, 8, 4)
    told = {line.split()[0]: line.split("x   ")[1] for line in tell(samples)}
    assert told["claim_cpu_ms"] == "NOT FLAT"
    assert told["batch_cpu_ms"] == "flat"
    assert told["queue_mb"] == "grows with the work"


def test_a_pace_that_falls_is_not_flat() -> None:
    samples = [Sample(minute, 1, 5, 1000 / minute, *[1.0] * 9) for minute in range(1, 10)]
    assert judge(samples)["entries_per_second"][2] == 4


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
