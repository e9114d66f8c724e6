"""The short form of `make bench`: a worker against the stand-in migrates everything, and the figures are told."""

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parent.parent / "bench" / "worker_speed.py"


def test_one_worker_migrates_all_entries_against_the_stand_in() -> None:
    arguments = ["--entries=300", "--batch-size=50", "--latency-ms=5", "--parallel=32", "--slots=2"]
    run = subprocess.run(
        [sys.executable, str(BENCH), *arguments], capture_output=True, text=True, timeout=100, check=True
    )
    figures = json.loads(run.stdout)
    assert figures["entries"] == 300
    assert figures["entries_per_second"] > 0
    assert figures["worker_cpu_ms_per_entry"] > 0
    assert figures["stand_in_cpu_ms_per_request"] > 0
