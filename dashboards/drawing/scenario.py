"""A real migration in five states: running, paused, failing, attention, done.

Two hosts with two processes each migrate two tables. There is a pause; then twelve objects are lost, a process is
killed, and the server throttles. When only the batches of the lost objects are left, in ERROR, the objects are put back
and the batches requeued. S3 is the lab's fake server, with the latency of a real one.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.servers.server_process import find_free_port
from rowferry_lab.simulated.environment import Environment, start_environment
from support.processes.prometheus_server import Prometheus, running_prometheus

STATES = ("running", "paused", "failing", "attention", "done")
ROWS, BATCH_SIZE = 44_000, 50
HOSTS = ("droplet-1", "droplet-2")
WRITES_PER_SECOND = 60
"""What the server lets through while it throttles."""
BUCKET = "sketch-legacy-s3"
DEADLINE = timedelta(minutes=10)
SECOND_TABLE = """
[[entries]]
table = "public.covers"
id = "id"
key = "path"
from = "cover/"
to = "photo/"
"""
NEXT = """
(select path from public.avatars where path like 'image/%' order by id offset 400 limit 6)
union all (select path from public.covers where path like 'cover/%' order by id offset 400 limit 6)
"""
"""Keys of waiting rows, of batches that are not claimed yet."""


@dataclass
class Scenario:
    """A migration that is watched."""

    environment: Environment
    server: FakeS3Server
    reader_dsn: str
    prometheus: Prometheus
    started_at: datetime
    lost: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The objects that were deleted, by their keys."""

    def wait_for_share(self, share: float) -> None:
        """Return once this part of the batches is finished; raises TimeoutError."""
        give_up_at = time.monotonic() + DEADLINE.total_seconds()
        while ask("select avg((status <> 'INIT')::int) from rowferry.batch_queue")[0][0] < share:
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{share:.0%} of the batches were not finished within {DEADLINE}")
            time.sleep(0.2)

    def lose_objects(self) -> None:
        """Delete legacy objects that waiting rows point at."""
        s3 = self.environment.open_s3()
        for (key,) in ask(NEXT):
            found = s3.get_object(Bucket=BUCKET, Key=key)
            self.lost[key] = {"Body": found["Body"].read(), "ContentType": found["ContentType"]}
            s3.delete_object(Bucket=BUCKET, Key=key)

    def mend(self) -> None:
        """Put the objects back, and requeue their batches."""
        for key, content in self.lost.items():
            self.environment.open_s3().put_object(Bucket=BUCKET, Key=key, **content)
        rowferry("requeue", "--all")


def run(folder: Path, look: Callable[[str, Scenario], None]) -> None:
    """Run the migration; call `look` with the name of each state while it lasts."""
    with ExitStack() as until:
        server = FakeS3Server("--latency-seconds=0.03", "--latency-sigma=0.4")
        environment = until.enter_context(start_environment(lambda: server))
        environment.plan_path.write_text(environment.plan_path.read_text() + SECOND_TABLE)
        rowferry("prepare", str(ROWS), "--yes", "--clean-production")
        rowferry("init")
        dsn = make_reader()
        exporter = [until.enter_context(started("exporter", folder / "exporter.log", DATABASE_URL=dsn))]
        until_end = until.enter_context(ExitStack())
        workers = [until_end.enter_context(worker_on(host, folder)) for host in HOSTS]
        targets = {"rowferry-worker": workers, "rowferry-exporter": exporter}
        prometheus = until.enter_context(running_prometheus(folder, targets))
        seen = Scenario(environment, server, dsn, prometheus, datetime.now(UTC))
        rowferry("enqueue", "--yes", "--batch-size", str(BATCH_SIZE))
        _go_through(seen, look)
        until_end.close()
        time.sleep(5)
        look("done", seen)


def _go_through(seen: Scenario, look: Callable[[str, Scenario], None]) -> None:
    """Bring the migration into each state but the last, and to its end."""
    seen.wait_for_share(0.4)
    look("running", seen)
    rowferry("pause")
    time.sleep(35)
    look("paused", seen)
    seen.lose_objects()
    seen.server.configure("limits", writes_per_second=WRITES_PER_SECOND)
    rowferry("resume")
    time.sleep(5)
    os.kill(ask("select pid from rowferry.live_workers where host = 'droplet-2' limit 1")[0][0], signal.SIGKILL)
    seen.wait_for_share(0.85)
    look("failing", seen)
    seen.server.configure("limits", writes_per_second=0)
    seen.wait_for_share(1)
    time.sleep(8)
    look("attention", seen)
    seen.mend()
    seen.wait_for_share(1)
    time.sleep(8)


def ask(query: str) -> list[tuple[Any, ...]]:
    """Return the rows."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def make_reader() -> str:
    """Make the role that Grafana and the exporter have, and return its DSN."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("create role rowferry_grafana login password 'shown'")
    rowferry("init", "--grants", "rowferry_grafana", "--for", "grafana", "--apply")
    return make_conninfo(os.environ["DATABASE_URL"], user="rowferry_grafana", password="shown")  # noqa: S106


def rowferry(*arguments: str) -> None:
    """Run a command to its end; what it says is shown where it fails."""
    command = [sys.executable, "-m", "rowferry_cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE.total_seconds(), check=False)
    if done.returncode:
        raise SystemExit(f"rowferry {' '.join(arguments)}:\n{done.stdout}{done.stderr}")


@contextmanager
def worker_on(host: str, folder: Path) -> Iterator[int]:
    """Yield the port of the metrics of a worker with two processes."""
    options = ("--host-name", host, "--processes", "2", "--parallel", "3")
    with started("worker", folder / f"{host}.log", *options) as port:
        yield port


@contextmanager
def started(name: str, log: Path, *options: str, **environment: str) -> Iterator[int]:
    """Yield the port on which a command of rowferry serves metrics; end it afterwards."""
    port = find_free_port()
    at = {"worker": "--metrics-port", "exporter": "--port"}[name]
    command = [sys.executable, "-m", "rowferry_cli", name, at, str(port), "--log-format", "json", *options]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env={**os.environ, **environment}
        )
    try:
        yield port
    finally:
        process.terminate()
        process.wait(DEADLINE.total_seconds())
