"""Measures what the processes reach that a test starts; each Python of the environment runs this file at its start.

`record` writes the running test into a file named after the process that runs the tests, and starts the measurement
there. A process that it has started finds the test by its ancestors.
"""

import atexit
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import coverage

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".tools" / "quick"
"""Holds a file a test process, the measured data and what tests cost; it is there while tests are recorded."""
PRODUCT = ("rowferry", "worker", "enqueue", "queues", "cli", "exporter", "lab")

_running: list[coverage.Coverage] = []


def begin(context: str | None) -> coverage.Coverage:
    """Measure lines and branches of the product from now on, for a test; None: it is told by `switch_context`."""
    measured = coverage.Coverage(
        config_file=False,
        data_file=str(FOLDER / "data"),
        data_suffix=True,
        branch=True,
        include=[f"{ROOT}/{name}/*" for name in PRODUCT],
        context=context,
    )
    measured.start()
    _running.append(measured)
    return measured


def begin_child() -> None:
    """Measure this process for the test that has started it, if a test has; nothing of its parent's is kept."""
    while _running:
        _running.pop().stop()
    context = find_test()
    if context is not None:
        begin(context)


def end() -> None:
    while _running:
        measured = _running.pop()
        measured.stop()
        measured.save()


def leave(status: int, leave: Callable[[int], NoReturn] = os._exit) -> NoReturn:
    """Save what was measured and end the process, as its exit functions may be those of another that was forked."""
    end()
    leave(status)


def find_test() -> str | None:
    """Return the test that the nearest recorded ancestor runs; None where there is none."""
    pid = os.getpid()
    while pid > 1:
        parent = read_fields(pid)[0]
        if (FOLDER / str(parent)).exists():
            return (FOLDER / str(parent)).read_text(encoding="utf-8") or None
        pid = parent
    return None


def read_fields(pid: int) -> list[int]:
    """Return the numbers of a process's /proc/PID/stat, from its parent on; all 0 once it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return [0] * 14
    return [int(field) for field in text.rpartition(")")[2].split()[1:15]]


if FOLDER.is_dir():
    os.register_at_fork(after_in_child=begin_child)
    atexit.register(end)
    os._exit = leave
    if not any("multiprocessing.forkserver" in argument for argument in sys.orig_argv):  # it forks what is measured
        begin_child()
