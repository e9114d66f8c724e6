"""The world of one scenario: what there is to migrate, what is done with it, and what has become of it."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg.rows import DictRow, dict_row

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.processes.processes import wait_for
from torture.auditor import Auditor
from torture.final_checks import Expected, run_final_checks
from torture.legacy_record import LegacyRecord
from torture.oracle import Oracle
from torture.workers import Command, WorkerPool

COMMAND_DEADLINE = timedelta(seconds=600)
LARGE_BYTES = 11 * 1024 * 1024
"""Three parts of at least 5 MiB, the least that S3 takes."""
CONTENT_TYPES = ("image/png", "image/jpeg", "application/octet-stream")
WAITING = "select count(*)::int as waiting from rowferry.batch_queue where status = 'INIT'"


@dataclass
class World:
    """Everything that a scenario works with. `migration` is the table, the plan and both buckets."""

    seed: int
    folder: Path
    postgres: EmbeddedPostgres
    s3: S3Server
    migration: Migration
    oracle: Oracle
    auditor: Auditor
    legacy_record: LegacyRecord = field(init=False)
    environment: dict[str, str] = field(default_factory=dict)
    """What workers find in their environment besides what every worker must: a proxy's address, for instance."""
    killed_pids: set[int] = field(default_factory=set)
    pools: list[WorkerPool] = field(default_factory=list)
    entries: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.legacy_record = LegacyRecord(self.s3, self.migration.legacy)

    # What there is to migrate

    def fill(self, count: int, *, large: int = 1, sizes_bytes: Collection[int] = ()) -> None:
        """Add rows, and legacy objects of random bytes with properties; `large` of them are copied part by part.

        `sizes_bytes`: what some others have; the rest is small.
        """
        start = self.entries + 1
        self.entries += count
        rows = range(start, start + count)
        for number in rows:
            self.oracle.expect(number)
        sizes = {number: self.random.randrange(0, 4096) for number in rows}
        special = [LARGE_BYTES] * large + [*sizes_bytes]
        sizes |= zip(self.random.sample(rows, len(special)), special, strict=True)
        bodies = {number: self.random.randbytes(size) for number, size in sizes.items()}
        for number, body in bodies.items():
            self.oracle.expect(number, body)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._put, bodies.keys(), bodies.values()))
        self.legacy_record.take(key_of(number) for number in rows)
        self.migration.close()  # its connection may be one to a PostgreSQL that was restarted since
        self.migration.insert({str(number): key_of(number) for number in rows})

    def _put(self, number: int, body: bytes) -> None:
        content_type = CONTENT_TYPES[number % len(CONTENT_TYPES)]
        properties = {"ContentType": content_type, "Metadata": {"number": str(number)}}
        self.migration.legacy.put(key_of(number), body, **properties)

    # What is done with it

    def rowferry(self, *arguments: str, statuses: tuple[int, ...] = (0,)) -> str:
        """Run a command to its end, and return what it printed."""
        ended = subprocess.run(
            [sys.executable, "-m", "rowferry_cli", *arguments],
            env={**os.environ, **self.migration.environment},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_DEADLINE.total_seconds(),
            check=False,
        )
        assert ended.returncode in statuses, f"rowferry {arguments} ended with {ended.returncode}:\n{ended.stderr}"
        return ended.stdout

    def enqueue(self, batch_size: int = 25) -> None:
        """Make a pass: batches for all legacy entries that have none."""
        self.migration.write_plan()
        with patch.dict(os.environ, self.migration.environment):
            self.migration.enqueue(batch_size)

    @contextmanager
    def workers(self, seats: int, *arguments: str, command: Command | None = None) -> Iterator[WorkerPool]:
        """Yield running workers, each replaced when it dies."""
        environment = {**self.migration.environment, **self.environment}
        with WorkerPool(seats, self.folder, environment, *arguments, command=command) as pool:
            self.pools.append(pool)
            with self.auditor.awake("workers ran"):
                yield pool

    def end_alive(self, pool: WorkerPool, seats: int) -> None:
        """Tell workers to finish, which none may fail to do, and report each that has died before."""
        assert pool.stop() == [0] * seats
        for death in pool.deaths:
            self.auditor.report(f"a worker died of it: {death}: {pool.log_of(death.seat)[-800:]}")

    def ask(self, query: str, *parameters: object) -> Any:
        """Return the one value of the one row, on a connection that survives restarts of PostgreSQL."""
        (row,) = self.query(query, *parameters)
        (value,) = row.values()
        return value

    def query(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        with psycopg.Connection[DictRow].connect(
            self.migration.dsn, autocommit=True, row_factory=dict_row
        ) as connection:
            return connection.execute(query.encode(), parameters or None).fetchall()

    def waiting(self) -> int:
        """Return how many batches are INIT."""
        return self.ask(WAITING)

    def server_log(self) -> str:
        """Return what PostgreSQL itself has noted down."""
        return (self.postgres.folder / "server.log").read_text(errors="replace")

    def wait_until_done(self, within: timedelta = timedelta(seconds=300)) -> None:
        """Return when no batch is INIT any more."""
        wait_for(self._is_done, deadline=within)

    def _is_done(self) -> bool:
        try:
            return self.waiting() == 0
        except psycopg.OperationalError:
            return False

    # What has become of it

    def run_final_checks(self, expected: "Expected | None" = None) -> None:
        """Make the final account; workers must have been stopped. What does not add up, the auditor counts."""
        self.auditor.end()
        for words in run_final_checks(self, expected or Expected()):
            self.auditor.report(words)

    def report(self) -> dict[str, Any]:
        """Return what `rowferry report` says of the migration."""
        return json.loads(self.rowferry("report", "--json", statuses=(0, 1)))


def key_of(number: int) -> str:
    """Return a legacy key: folders, spaces and letters that have to be encoded."""
    return f"{FROM}u{number}/{('me', 'a b+c', 'ä%41', 'x=&y')[number % 4]}.png"


def production_key_of(number: int) -> str:
    return key_of(number).replace(FROM, TO, 1)
