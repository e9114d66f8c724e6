"""A real migration in six states: before, running, paused, failing, attention, done.

Two hosts with two processes each migrate two tables. There is a pause; then twelve objects are lost, a process is
killed, and one host is throttled. When only their batches are left, in ERROR, the objects are put back, and what the
dashboard says is typed. S3 is the lab's fake server, with the latency of a real one.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import make_conninfo

from drawing.hosts import worker_on
from drawing.mending import commands_of, put_back, take_away, type_in_shell
from drawing.prometheus import SCRAPE_SECONDS, add_workers, running
from drawing.sources import Sources
from drawing.throttling_proxy import Throttle, throttling_proxy
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.servers.server_process import find_free_port
from rowferry_lab.simulated.environment import Environment, start_environment

STATES = ("before", "running", "paused", "failing", "attention", "done")
ROWS, BATCH_SIZE = 44_000, 50
HOSTS = {"droplet-1": "127.0.0.1", "droplet-2": "127.0.0.2"}
"""Under which address each host reaches S3; the second goes through the proxy that throttles."""
THROTTLED_PER_SECOND = 8
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
    sources: Sources
    throttle: Throttle
    started_at: float
    chosen: Mapping[str, str] = field(default_factory=dict[str, str])
    scrape_seconds: int = SCRAPE_SECONDS
    lost: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The objects that were deleted, by their keys."""

    def finished(self) -> float:
        """Return the share of the entries that are finished."""
        return float(self.ask("select avg((status <> 'INIT')::int) from rowferry.batch_queue") or 0)

    def ask(self, query: str) -> Any:
        """Return the one value of the one row."""
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
        return row and row[0]

    def wait_for_share(self, share: float) -> None:
        """Return once this part of the batches is finished; raises TimeoutError."""
        give_up_at = time.monotonic() + DEADLINE.total_seconds()
        while self.finished() < share:
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"only {self.finished():.0%} of the batches were finished within {DEADLINE}")
            time.sleep(0.2)

    def lose_objects(self) -> None:
        """Delete legacy objects that waiting rows point at."""
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            keys = [row[0] for row in connection.execute(NEXT)]
        self.lost = take_away(self.environment.open_s3(), keys)

    def mend(self, shown: Mapping[str, Any]) -> None:
        """Put the objects back, and type what the dashboard Migration, so answered, says."""
        put_back(self.environment.open_s3(), self.lost)
        for command in commands_of(shown):
            type_in_shell(command)

    def kill_a_process(self) -> None:
        """Kill a worker process of the second host."""
        os.kill(self.ask("select pid from rowferry.live_workers where host = 'droplet-2' limit 1"), signal.SIGKILL)


def run(folder: Path, look: Callable[[str, Scenario], Mapping[str, Any]]) -> None:
    """Run the migration; call `look` with the name of each state while it lasts. It answers for Migration."""
    with scenario(folder) as seen, ExitStack() as until:
        time.sleep(15)
        look("before", seen)
        workers = [until.enter_context(_worker(host, folder)) for host in HOSTS]
        add_workers(folder, {worker.host: worker.metrics_port for worker in workers})
        seen.wait_for_share(0.4)
        look("running", seen)
        rowferry("pause")
        time.sleep(35)
        look("paused", seen)
        seen.lose_objects()
        seen.throttle.per_second = THROTTLED_PER_SECOND
        rowferry("resume")
        time.sleep(5)
        seen.kill_a_process()
        seen.wait_for_share(0.85)
        look("failing", seen)
        seen.throttle.per_second = None
        seen.wait_for_share(1)
        time.sleep(8)
        seen.mend(look("attention", seen))
        seen.wait_for_share(1)
        time.sleep(8)
        until.close()
        time.sleep(5)
        look("done", seen)


@contextmanager
def scenario(folder: Path) -> Iterator[Scenario]:
    """Start everything but the workers, and enqueue."""
    with ExitStack() as until:
        s3 = FakeS3Server("--latency-seconds=0.03", "--latency-sigma=0.4")
        environment = until.enter_context(start_environment(lambda: s3))
        port = urlsplit(environment.s3_server.endpoint_url).port or 0
        plan = environment.plan_path.read_text(encoding="utf-8").replace("//127.0.0.1:", "//localhost:")
        environment.plan_path.write_text(plan + SECOND_TABLE, encoding="utf-8")
        throttle = until.enter_context(throttling_proxy(HOSTS["droplet-2"], port))
        rowferry("prepare", str(ROWS), "--yes", "--clean-production")
        rowferry("init")
        dsn = make_reader()
        exporter_port = until.enter_context(_exporter(folder, dsn))
        sources = Sources(dsn, until.enter_context(running(folder, exporter_port)))
        started_at = time.time()
        rowferry("enqueue", "--yes", "--batch-size", str(BATCH_SIZE))
        yield Scenario(environment, sources, throttle, started_at)


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


def _worker(host: str, folder: Path) -> Any:
    return worker_on(host, HOSTS[host], folder, "--processes", "2", "--parallel", "3")


@contextmanager
def _exporter(folder: Path, dsn: str) -> Iterator[int]:
    """Yield the port of a running exporter, which has Grafana's role."""
    port = find_free_port()
    command = [sys.executable, "-m", "rowferry_cli", "exporter", "--port", str(port), "--log-format", "json"]
    environment = {**os.environ, "DATABASE_URL": dsn}
    with (folder / "exporter.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(60)
