"""The environment of the benches: PostgreSQL with its own defaults, the fake S3 server, measured processes."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from rowferry.db.connection import connect
from rowferry.db.schema import initialise
from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import FakeS3Server

HONEST_SETTINGS = {"fsync": "on", "full_page_writes": "on", "jit": "on", "shared_buffers": "128MB"}
"""PostgreSQL's own defaults, where the embedded server's are those of data that may be lost."""


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


def execute(statement: str | sql.Composed, dsn: str | None = None) -> list[tuple[Any, ...]]:
    """Run a statement by itself, in the database of the bench or in another one, and return its rows."""
    with psycopg.connect(dsn or os.environ["DATABASE_URL"], autocommit=True) as connection:
        cursor = connection.execute(statement.encode() if isinstance(statement, str) else statement)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def leading_to(dsn: str) -> Iterator[None]:
    """Let DATABASE_URL lead there for a while."""
    before = os.environ["DATABASE_URL"]
    os.environ["DATABASE_URL"] = dsn
    try:
        yield
    finally:
        os.environ["DATABASE_URL"] = before


def read_postgres_version() -> str:
    """Return the version of the server that DATABASE_URL leads to, as 18.1."""
    with connect("bench", autocommit=True) as connection:
        row = connection.execute("show server_version").fetchone()
    assert row is not None
    return str(row["server_version"]).split()[0]


def fake_s3(latency_ms: float, *options: str, body_bytes: int = 20_000) -> FakeS3Server:
    """Return an S3 server, to be started, with equal objects of this size under all keys of the bucket `legacy`."""
    return FakeS3Server(f"--latency-seconds={latency_ms / 1000}", f"--body-bytes={body_bytes}", *options)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used, its own reaped children included."""

    wall_seconds: float
    cpu_seconds: float
    memory_mb: float
    """The largest resident size of one process of them."""


def run_measured(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Usage:
    """Run a command to its end and return what it used; AssertionError with its last words where it failed."""
    with tempfile.TemporaryFile("w+") as words, tempfile.NamedTemporaryFile() as used:
        shim = (sys.executable, "-S", str(Path(__file__).with_name("used.py")), used.name)
        everything = {**os.environ, **(environment or {})}
        status = subprocess.call([*shim, *command], env=everything, stdout=words, stderr=words)
        words.seek(0)
        assert status == 0, f"{command[0]} ended with {status}: {words.read()[-2000:]}"
        return Usage(*json.load(used))
