"""What one more entry costs a worker: CPU, and calls of functions, from some entries to some thousand more.

    python -m bench.trace [--few 2000] [--many 6000] [--server stub] [--immutable] [--top 25]

The start, the first batch and the last one are in both runs, so they are in neither figure. Calls are counted in runs
of their own, by sys.setprofile, which makes them slow: their CPU is not told.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from bench.regression import ROOT, Contestant
from bench.servers import SERVERS, STUB

COUNTS = "ROWFERRY_TRACE_COUNTS"
"""The variable that names the file for the counts of a worker."""


def count_calls() -> None:
    """Run `rowferry` with the arguments of this process, and write how often each function was called."""
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, called: Any) -> None:
        thread = "loop" if threading.current_thread().name == "rowferry-loop" else "rest"
        if event == "call":
            path = Path(frame.f_code.co_filename)
            counts[f"{thread} Python {path.parent.name}/{path.stem}.{frame.f_code.co_qualname}"] += 1
        elif event == "c_call":
            counts[f"{thread} C {called.__module__ or type(called.__self__).__name__}.{called.__name__}"] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    from rowferry_cli import main  # noqa: PLC0415 - its calls are counted too

    try:
        main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        Path(os.environ[COUNTS]).write_text(json.dumps(counts.copy()), encoding="utf-8")


def measure(contestant: Contestant, server_name: str, rows: int) -> float:
    """Migrate so many rows and return the CPU of that, in seconds."""
    return contestant.run_at(server_name, rows).cpu * rows / 1000


def read_counts(server_name: str, rows: int, legacy: str) -> Counter[str]:
    """Migrate so many rows and return how often each function was called."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[COUNTS] = str(Path(folder, "counts.json"))
        command = (sys.executable, "-c", "from bench.trace import count_calls; count_calls()")
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        measure(Contestant("counted", ROOT, legacy, command), server_name, rows)
        return Counter(json.loads(Path(os.environ[COUNTS]).read_text(encoding="utf-8")))


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", type=int, default=2000, help="Entries of the short runs")
    parser.add_argument("--many", type=int, default=6000, help="Entries of the long runs")
    parser.add_argument("--server", choices=SERVERS, default=STUB, help="What to run against")
    parser.add_argument("--immutable", action="store_true", help="The plan says that no legacy object changes")
    parser.add_argument("--top", type=int, default=25, help="Functions to list")
    options = parser.parse_args()
    legacy, more = "immutable = true" * options.immutable, options.many - options.few
    now = Contestant("now", ROOT, legacy)
    seconds = measure(now, options.server, options.many) - measure(now, options.server, options.few)
    counts = read_counts(options.server, options.many, legacy)
    counts.subtract(read_counts(options.server, options.few, legacy))
    print(f"{1000 * seconds / more:.3f} ms of CPU an entry, load {os.getloadavg()[0]:.1f}")
    for kind in ("loop Python", "loop C", "rest Python", "rest C"):
        calls = sum(number for name, number in counts.items() if name.startswith(f"{kind} "))
        print(f"{calls / more:7.1f} calls an entry, {kind}")
    for name, number in counts.most_common(options.top):
        print(f"{number / more:7.2f} {name}")


if __name__ == "__main__":
    main()
