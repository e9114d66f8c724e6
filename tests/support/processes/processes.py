"""Processes of the tests: whether one lives, waiting for what others do, and a server started by another user."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE
from threading import Event, Thread
from typing import Any, Protocol

import pytest

from support.processes.clock import LoadClock

DEADLINE = timedelta(seconds=30)
"""How long others may take, on a `LoadClock`: what comes at all, comes sooner."""

COMMAND_DEADLINE = timedelta(seconds=60)
"""How long a command may take to its end, or workers to the end of all work, on the same clock."""

START_AND_WAIT = """
import sys
from rowferry_lab.servers.postgres import EmbeddedPostgres
with EmbeddedPostgres() as server:
    print(server.pid, server.folder, server.dsn(), flush=True)
    sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    """Return whether a process of this id exists and is more than a zombie."""
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(pid, 0)
        if not Path("/proc/self").exists():
            return True
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return state != "Z"
    return False


class Ending(Protocol):
    """A process, as far as its end is of interest."""

    def poll(self) -> int | None: ...


class Awaited(Ending, Protocol):
    """The same, which tells how it has ended."""

    def wait(self) -> int: ...


def wait_for(condition: Callable[[], object], *, deadline: timedelta = DEADLINE, by: Collection[Ending] = ()) -> None:
    """Return once the condition holds; fail the test at the deadline, which a `LoadClock` tells.

    `by` are the processes that make it come true: the test fails as soon as all of them have ended without that.
    """
    clock = LoadClock()
    while True:
        ended = [process.poll() for process in by]
        if seen := condition():
            return
        assert not ended or None in ended, f"all processes ended, with {ended}, and the condition is still {seen!r}"
        assert clock.look() < deadline.total_seconds(), f"the condition is still {seen!r} after {clock}"
        time.sleep(0.01)


def wait_for_end(process: Awaited, *, deadline: timedelta = DEADLINE) -> int:
    """Return the exit status of a process; fail the test at the deadline, and leave the process as it is."""
    wait_for(lambda: process.poll() is not None, deadline=deadline)
    return process.wait()


@contextmanager
def meanwhile(*acts: Callable[[Event], None]) -> Iterator[None]:
    """Run acts in threads of their own until the block ends, which sets their event; raise what one of them has raised.

    What an act has begun then, it has a minute to end.
    """
    ended, faults = Event(), list[Exception]()

    def run(act: Callable[[Event], None]) -> None:
        try:
            act(ended)
        except Exception as fault:  # noqa: BLE001 - it is raised again below
            faults.append(fault)

    threads = [Thread(target=run, args=[act], daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "what ran meanwhile did not come to its end"
    if faults:
        raise faults[0]


def run_to_end(
    command: Sequence[str], *, typed: str = "", deadline: timedelta = COMMAND_DEADLINE, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command with `typed` as its input, and return its status and output; at the deadline, end it and fail."""
    clock, left = LoadClock(), typed or None
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, **options) as process:
        while True:
            try:
                out, err = process.communicate(left, timeout=0.1)
            except subprocess.TimeoutExpired:
                left = None
                if clock.look() > deadline.total_seconds():
                    process.kill()
                    out, err = process.communicate()
                    pytest.fail(f"{' '.join(command)} did not end within {clock}; it wrote:\n{out}\n{err}")
            except BaseException:
                process.kill()
                raise
            else:
                return subprocess.CompletedProcess(list(command), process.returncode, out, err)


@dataclass(frozen=True)
class Started:
    """A server that another Python process has started."""

    parent: subprocess.Popen[str]
    pid: int
    folder: Path
    dsn: str


@contextmanager
def start_elsewhere(python: str = sys.executable, **account: Any) -> Iterator[Started]:
    """Yield a PostgreSQL that a new Python process has started; it stops when that one ends or its input is closed."""
    with subprocess.Popen(
        [python, "-c", START_AND_WAIT],
        cwd="/",
        env=same_packages(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        **account,
    ) as parent:
        assert parent.stdout is not None
        pid, folder, dsn = parent.stdout.readline().split()
        yield Started(parent, int(pid), Path(folder), dsn)


def same_packages() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def find_public_python() -> str:
    """Return a Python that the user `nobody` may run with the packages of this one; skip when there is none."""
    for python in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        with suppress(OSError, subprocess.CalledProcessError):
            command = [python, "-c", "import psycopg, rowferry_lab.servers.postgres"]
            subprocess.run(command, user="nobody", cwd="/", env=same_packages(), check=True, capture_output=True)
            return python
    pytest.skip("the user `nobody` may run no Python with these packages")
