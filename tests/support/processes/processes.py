"""Processes of the tests: whether one lives, waiting for what others do, and a server started by another user."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

DEADLINE = timedelta(seconds=200)
"""How long others may take on a machine that has twenty times too much to do; what comes at all, comes sooner."""

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


def wait_for(condition: Callable[[], object], *, deadline: timedelta = DEADLINE) -> None:
    """Return once the condition holds; fail the test at the deadline."""
    give_up_at = time.monotonic() + deadline.total_seconds()
    while not condition():
        assert time.monotonic() < give_up_at, "the condition did not come true before the deadline"
        time.sleep(0.01)


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
