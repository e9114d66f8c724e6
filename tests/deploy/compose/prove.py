"""`make test-compose`: compose.yaml from nothing to a finished migration, with all that may happen on the way."""

import json
import os
import time
from contextlib import suppress
from signal import SIGKILL
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import click
from engine import COMPOSE, Impossible, Proof, find_engine, tell_end

from rowferry_lab.servers.server_process import find_free_port

ENTRIES = int(os.environ.get("ROWFERRY_ENTRIES", "20000"))

COUNT = "select count(*) filter (where path like 'image/%'), count(*) filter (where path like 'avatar/%') from avatars"
CREATED = "select oid from pg_class where relname = 'avatars'"
FRESH = "select count(*) from rowferry.live_workers where last_seen_at > pg_postmaster_start_time()"
LIVE = "select count(*) from rowferry.live_workers"
BATCHES = "select count(*) filter (where status = '{}') from rowferry.batch_queue"
BALANCE = """select sum(entry_count), sum(migrated + kept), sum(changed + deleted + missing + conflict + failed)
from rowferry.batch_queue"""


class ComposeProof(Proof):
    def run(self) -> None:
        self.take(self.build, self.come_up, self.scale, self.kill, self.restart, self.finish, self.watch, self.stop)

    def build(self) -> str:
        self._engine.compose("build", "worker", "prepare", seconds=900)
        size = int(self._engine.docker("image", "inspect", "rowferry:0.1.0", "--format", "{{.Size}}"))
        return f"built the worker's image: {size / 1e6:.0f} MB, of which Debian and Python are the most"

    def come_up(self) -> str:
        self._engine.compose("up", "--detach", "--no-build", seconds=600)
        self._rowferry("pause", "--migration", "avatars")  # there is more to prove before it is over
        self.wait("a healthy worker", lambda: self._healthy("worker") == 1)
        self.wait("a process for each core", lambda: int(self._ask(LIVE)) == len(os.sched_getaffinity(0)))
        assert sum(map(int, self._ask(COUNT).split("|"))) == ENTRIES
        processes = f"a worker with {self._ask(LIVE)} processes healthy"
        return f"up: {ENTRIES:,} entries prepared, the legacy ones enqueued, {processes}; paused the migration"

    def scale(self) -> str:
        before = self._ask(CREATED)
        self._engine.environment["ROWFERRY_WORKER_PROCESSES"] = "1"
        self._engine.compose("up", "--detach", "--no-build", "--scale", "worker=6", seconds=300)
        self.wait("six healthy workers", lambda: self._healthy("worker") == 6)
        assert self._ask(CREATED) == before, "the data were made anew"
        live = self._ask(LIVE)
        self._rowferry("resume", "--migration", "avatars")
        return f"scaled to 6: {live} in rowferry.live_workers, the data left as they were; resumed the migration"

    def kill(self) -> str:
        self._must_be_at_work()
        victim = self._containers("worker")[0]
        pid = int(self._inspect(victim, "{{.State.Pid}}"))
        os.kill(pid, SIGKILL)
        self.wait("the killed worker to be back", lambda: self._log(victim).count("worker started") == 2)
        assert self._inspect(victim, "{{.RestartCount}}") == "1"
        return f"killed a worker by its host pid, {pid}: the restart policy brought it back"

    def restart(self) -> str:
        self._must_be_at_work()
        before = self._restarts()
        self._engine.compose("restart", "--no-deps", "postgres")
        self.wait("PostgreSQL", lambda: self._healthy("postgres") == 1)
        self.wait("six live workers", lambda: self._try(FRESH) == "6")
        assert self._restarts() == before, "a worker did not outlive the restart"
        return "restarted PostgreSQL in the middle: all six workers outlived it and connected again"

    def finish(self) -> str:
        self.wait("the queue to be empty", lambda: self._try(BATCHES.format("INIT")) == "0", seconds=600)
        legacy, production = map(int, self._ask(COUNT).split("|"))
        entries, moved, others = map(int, self._ask(BALANCE).split("|"))
        assert (legacy, production) == (0, ENTRIES), (legacy, production)
        assert entries == moved, (entries, moved, others)
        assert others == 0
        done = self._ask(BATCHES.format("DONE"))
        counts = f"{done} batches DONE, {moved:,} of {entries:,} entries moved"
        return f"all migrated: 0 legacy, {production:,} production; {counts}"

    def watch(self) -> str:
        self.wait("Prometheus to see 6 workers", lambda: len(self._up("worker")) == 6)
        self.wait("Prometheus to see the exporter", lambda: len(self._up("exporter")) == 1)
        counted = float(self._query("sum(rowferry_entries_total)")[0]["value"][1])
        return f"Prometheus found 6 workers by DNS and the exporter, all up; they have counted {counted:,.0f} entries"

    def stop(self) -> str:
        worker = self._containers("worker")[-1]
        began = time.monotonic()
        self._engine.docker("stop", "--time", 45, worker)
        took = time.monotonic() - began
        status = self._inspect(worker, "{{.State.ExitCode}}")
        assert status == "0", f"exit status {status}:\n{self._log(worker)[-2000:]}"
        assert "worker stopped" in self._log(worker)
        user = self._inspect(worker, "{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}")
        assert user == "10001:10001 true [ALL]", user
        return f"docker stop: SIGTERM reached the worker, exit status 0 after {took:.1f} s (user 10001, read-only root)"

    # What is asked, and how long for

    def _must_be_at_work(self) -> None:
        left = int(self._ask(BATCHES.format("INIT")))
        assert left > 0, f"the migration was over too early to disturb it: set ROWFERRY_ENTRIES above {ENTRIES}"

    def _ask(self, query: str) -> str:
        psql = ["psql", "--host=127.0.0.1", "--username=postgres", "--dbname=rowferry", "--no-align", "--tuples-only"]
        password = ["--env", "PGPASSWORD=demo-postgres"]
        return self._engine.compose("exec", "--no-TTY", *password, "postgres", *psql, "--command", query, seconds=60)

    def _rowferry(self, *command: str) -> None:
        self._engine.compose("exec", "--no-TTY", "worker", "rowferry", *command, seconds=60)

    def _try(self, query: str) -> str:
        with suppress(RuntimeError):
            return self._ask(query)
        return ""

    def _containers(self, service: str) -> list[str]:
        return self._engine.compose("ps", "--quiet", service).split()

    def _healthy(self, service: str) -> int:
        names = self._containers(service)
        states = self._engine.docker("inspect", "--format", "{{.State.Health.Status}}", *names).split() if names else []
        return states.count("healthy")

    def _restarts(self) -> list[str]:
        return sorted(
            self._engine.docker(
                "inspect", "--format", "{{.Id}} {{.RestartCount}}", *self._containers("worker")
            ).splitlines()
        )

    def _log(self, container: str) -> str:
        return self._engine.docker("logs", container)

    def _inspect(self, container: str, wanted: str) -> str:
        return self._engine.docker("inspect", "--format", wanted, container)

    def _up(self, job: str) -> list[dict[str, Any]]:
        return self._query(f'up{{job=~".*{job}.*"}} == 1')

    def _query(self, expression: str) -> list[dict[str, Any]]:
        address = self._engine.environment["PROMETHEUS_PORT"]
        with urlopen(
            f"http://127.0.0.1:{address}/api/v1/query?{urlencode({'query': expression})}", timeout=10
        ) as answer:
            return json.load(answer)["data"]["result"]


def choose_environment() -> dict[str, str]:
    """Return what compose reads: a project and ports of its own."""
    return {
        "COMPOSE_PROJECT_NAME": "rowferry-proof",
        "COMPOSE_PROGRESS": "plain",
        "ROWFERRY_ENTRIES": str(ENTRIES),
        "PROMETHEUS_PORT": str(find_free_port()),
        "GRAFANA_PORT": str(find_free_port()),
    }


def prove() -> None:
    if not COMPOSE.exists():
        raise Impossible("docker compose is not here: tools/install-compose builds it where `go` is installed.")
    engine = find_engine(choose_environment())
    click.echo(f"compose.yaml on Docker {engine.docker('version', '--format', '{{.Server.Version}}')}")
    try:
        ComposeProof(engine).run()
    except BaseException:
        click.echo(engine.compose("ps", "--all", check=False), err=True)
        click.echo(engine.compose("logs", "--tail", 12, check=False), err=True)
        raise
    finally:
        engine.compose("down", "--volumes", "--timeout", 20)


if __name__ == "__main__":
    tell_end(prove)
