"""What counting costs: CPU per request and per entry that the worker's metrics add, alone and with `--processes`.

Run it by `.venv/bin/python bench/metrics_cost.py`; the best of five rounds is told, since only that is the code's own.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

ROUNDS, CALLS = 5, 50_000
REQUESTS_AN_ENTRY = 2
"""A HEAD and a copy, where the server ignores If-None-Match."""


def measure(function: Callable[[], object]) -> float:
    """Return the CPU of one call, in microseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(CALLS):
            function()
        best = min(best, time.process_time() - began)
    return best / CALLS * 1e6


def tell(mode: str) -> None:
    """Measure in this process, whose environment chooses the mode, and print one line."""
    from rowferry.s3.operations import head_object  # noqa: PLC0415
    from rowferry.s3.responses import Response  # noqa: PLC0415 - the mode is chosen before these are imported
    from rowferry_worker.monitoring import metrics  # noqa: PLC0415
    from rowferry_worker.pacing.pacer import Pacer  # noqa: PLC0415
    from rowferry_worker.scheduling.recording import TransferTally, record_request  # noqa: PLC0415

    pace, request, response, tally = Pacer(1, 64), head_object("legacy", "a"), Response(200), TransferTally()
    deciding = measure(lambda: pace.note_success("server/bucket HeadObject", 0.01, 0, 64))
    recording = measure(
        lambda: record_request(
            pace, "server/bucket HeadObject", request, response, 0.01, tally=tally, in_flight=64, again=False
        )
    )
    a_request = recording - deciding
    seconds = metrics.object_seconds.labels("migrate")
    landing = measure(metrics.objects_in_flight.dec) + measure(lambda: seconds.observe(0.1))
    an_entry = REQUESTS_AN_ENTRY * a_request + landing
    costs = f"{a_request:5.1f} µs a request  {an_entry:5.1f} µs an entry"
    sys.stdout.write(f"{mode:<12} {costs}; the pace {deciding:4.2f} µs a request\n")


def main() -> None:
    """Measure both modes, each in a process of its own."""
    if len(sys.argv) > 1:
        tell(sys.argv[1])
        return
    subprocess.run([sys.executable, __file__, "one process"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        several = {"PROMETHEUS_MULTIPROC_DIR": folder, "ROWFERRY_PROCESS_NUMBER": "1"}
        subprocess.run([sys.executable, __file__, "--processes"], check=True, env={**os.environ, **several})


if __name__ == "__main__":
    main()
