"""What the benches need running: a PostgreSQL with its own defaults, the S3 stand-in, and processes that are measured."""

import json
import os
import platform
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rowferry.database import connect
from rowferry.demo.postgres import EmbeddedPostgres
from rowferry.schema import initialise

LONGEST_SECONDS = 1800
"""After this a stand-in ends by itself, whatever became of who started it."""

HONEST_SETTINGS = {"fsync": "on", "full_page_writes": "on", "jit": "on", "shared_buffers": "128MB"}
"""PostgreSQL's own defaults, where the embedded server's are those of data that nobody will miss."""


@contextmanager
def running_postgres(settings: Mapping[str, str] | None = None) -> Iterator[EmbeddedPostgres]:
    """Yield a fresh server with rowferry's schema; DATABASE_URL and any S3 credentials are set while it runs."""
    with EmbeddedPostgres(settings={**HONEST_SETTINGS, **(settings or {})}) as postgres:
        before = dict(os.environ)
        os.environ["DATABASE_URL"] = postgres.dsn()
        for side in ("LEGACY", "PRODUCTION"):
            os.environ |= {f"ROWFERRY_{side}_ACCESS_KEY_ID": "bench", f"ROWFERRY_{side}_SECRET_ACCESS_KEY": "bench"}
        try:
            with connect("bench", autocommit=True) as connection:
                initialise(connection)
            yield postgres
        finally:
            os.environ.clear()
            os.environ |= before


def read_postgres_version() -> str:
    """Return the version of the server that DATABASE_URL leads to, as 18.1."""
    with connect("bench", autocommit=True) as connection:
        row = connection.execute("show server_version").fetchone()
    assert row is not None
    return str(row["server_version"]).split()[0]


@dataclass(frozen=True, slots=True)
class StandIn:
    """A running stand-in."""

    url: str

    def read_stats(self) -> dict[str, float]:
        """Return how many requests it has answered, and the CPU seconds that it took for them."""
        with urllib.request.urlopen(f"{self.url}/_stats", timeout=30) as answer:
            return json.load(answer)


@contextmanager
def stand_in(latency_ms: float, *arguments: str) -> Iterator[StandIn]:
    """Yield a fresh S3 stand-in that answers after this time; `arguments` are further options of stand_in.py."""
    command = [sys.executable, str(Path(__file__).with_name("stand_in.py")), "--latency-ms", str(latency_ms)]
    command += ["--seconds", str(LONGEST_SECONDS), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield StandIn(f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}")
        finally:
            process.kill()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used, its own reaped children included."""

    wall_seconds: float
    cpu_seconds: float
    memory_mb: float
    """The largest resident size of one process of them."""


def run_measured(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Usage:
    """Run a command to its end and return what it used; AssertionError with its last words where it failed."""
    began = time.monotonic()
    with subprocess.Popen(
        command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        words = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command[0]} ended with {process.returncode}: {words[-2000:]}"
    unit = 1024 if platform.system() == "Linux" else 1024 * 1024
    return Usage(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)
