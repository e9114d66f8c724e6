"""Workers are killed at random moments: plainly, behind nginx, and as roles with the least rights."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from threading import Event, Thread
from typing import ClassVar
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rowferry.db.grants import PURPOSES, Purpose
from support.postgres.roles import log_in, new_role
from support.processes.processes import wait_for
from support.processes.scrape import find_served_port, scrape, sum_of
from support.s3.servers.proxies import NginxProxy
from torture.final_checks import Expected
from torture.scenarios.scenario import Scenario, Size
from torture.world import World, key_of

LONGEST_LIFE_SECONDS = 1.2
"""Between two kills lies up to this long, over all workers."""
CUT_OFF = "select count(*)::int from rowferry.batch_attempt where verdict is null"
COMPRESSED, OPERATED, READ = (
    "objects that nginx compresses when asked",
    "commands of the operator",
    "readings of the exporter",
)


class Kills(Scenario):
    what = "SIGKILL at random moments, over 8 workers that are replaced at once; server-side copies, then streamed ones"
    faults = frozenset({"SIGKILL"})
    forms = ("server", "stream")
    short, long = Size(3, 200, seats=2), Size(100, 3000, seats=8)
    batch = 25
    large = None
    plan: ClassVar = {
        # A batch that was killed by chance so often is no poison.
        "migration": {"max_attempts": 50},
        # Slow enough for a kill to meet workers in the middle of a batch.
        "production": {"max_requests_per_second": 150},
    }

    def choose_forms(self) -> Sequence[str]:
        return self.run.random.sample(self.forms, 1) if self.run.short else self.forms

    def cause(self) -> None:
        """Kill so many workers, most of them in the middle of a batch."""
        for number in range(self.times):
            pid = None
            while pid is None:
                self.keep_busy(self.seats, self.entries // 6, large=1 + self.entries // 600)
                self.pause(LONGEST_LIFE_SECONDS)
                pid = self.kill_worker()
            self.say(f"{number + 1} of {self.times} killed; {self.world.waiting()} batches wait")

    def end(self) -> None:
        self.end_killed()
        self.count("batches cut off", self.world.ask(CUT_OFF))
        self.count("uploads cut off", len(self.world.migration.production.open_uploads()))


class Proxy(Kills):
    what = "workers reach both buckets through nginx, which compresses HTML when asked; SIGKILL at random moments"
    faults = frozenset({"SIGKILL", COMPRESSED})
    forms = ("stream", "server")
    long = Size(60, 2000, seats=6)
    content_types = (
        "text/html",
        "text/html; charset=utf-8",
        "text/xml",
        "application/json",
        "image/svg+xml",
        "image/png",
    )
    html = 2
    """So many of them are compressed where `gzip on` is all that is set."""

    def choose_forms(self) -> Sequence[str]:
        return self.forms[:1] if self.run.short else self.forms

    def build(self, until: ExitStack) -> World:
        world = super().build(until)
        world.content_types, world.compressible = self.content_types, True
        self.endpoint_url = until.enter_context(NginxProxy(world.s3)).endpoint_url
        world.migration.reach_through(self.endpoint_url)
        return world

    def check(self) -> None:
        some = [n for n in range(1, self.entries + 1) if n % len(self.content_types) < self.html][:20]
        self.count(COMPRESSED, sum(self.is_compressed(key_of(number)) for number in some))
        super().check()

    def is_compressed(self, key: str) -> bool:
        """Return whether a client that asks for compression gets a legacy object compressed."""
        s3, path = self.world.s3, f"/{self.world.migration.legacy.bucket}/{quote(key, safe='/~')}"
        request = AWSRequest("GET", self.endpoint_url + path)
        S3SigV4Auth(Credentials(s3.access_key, s3.secret_key), "s3", "us-east-1").add_auth(request)
        connection = HTTPConnection(urlsplit(self.endpoint_url).netloc, timeout=30)
        try:
            connection.request("GET", path, headers={**dict(request.headers), "Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            answer.read()
            return answer.status == 200 and answer.headers["Content-Encoding"] == "gzip"
        finally:
            connection.close()


COMMANDS: Mapping[Purpose, tuple[str, ...]] = {
    "enqueuer": ("plan", "estimate", "enqueue", "clean-uploads", "status", "queues", "verify"),
    "worker": ("worker",),
    "operator": ("errors", "watch", "requeue", "report", "pause", "resume"),
    "grafana": ("exporter",),
}
"""Whose role runs what, as docs/permissions.md has it; `init` alone is left to the owner of the database."""
OPERATOR = ("pause", "resume", "errors --entries", "watch --once", "report", "requeue --all")
STRANGERS = """
select distinct application_name || ' as ' || usename as stranger from pg_stat_activity
where application_name ~ '^rowferry (worker|exporter)' and datname = current_database() and usename <> all(%s)
"""
PAUSE = timedelta(seconds=0.5)


class Ordinary(Kills):
    what = "owner, enqueuer, worker, operator and grafana are roles with the least rights; SIGKILL at random moments"
    faults = frozenset({"SIGKILL", OPERATED, READ})
    forms = ("",)
    long = Size(60, 2000, seats=8)

    def build(self, until: ExitStack) -> World:
        self.world = world = super().build(until)
        roles: dict[Purpose, str] = {
            purpose: until.enter_context(new_role(world.migration.dsn)) for purpose in PURPOSES
        }
        world.migration.write_plan()
        for purpose, role in roles.items():
            world.rowferry("init", "--grants", role, "--for", purpose, "--apply")
            world.logins |= dict.fromkeys(COMMANDS[purpose], log_in(world.migration, role))
        for command in ("plan", "estimate", "status", "queues"):
            world.rowferry(command)
        self.port = until.enter_context(self.running_exporter())
        self.beside = until.enter_context(ExitStack())
        self.beside.enter_context(self.repeating(self.operate))
        self.beside.enter_context(self.repeating(lambda: self.look(list(roles.values()))))
        return world

    def check(self) -> None:
        """Compare all objects, byte by byte, as the enqueuer and the worker."""
        self.beside.close()
        with self.world.workers(1, "--parallel=8") as pool:
            self.world.rowferry("verify", "--deep", "--yes", "--processes=0")
            self.world.wait_until_done()
            self.world.end_alive(pool, 1)
        self.world.run_final_checks(Expected(sum_of_entries=2 * self.world.entries))

    @contextmanager
    def repeating(self, act: Callable[[], object]) -> Iterator[None]:
        """Do something again and again in a thread until the block ends, which lets it finish; report exceptions."""
        ended = Event()

        def repeat() -> None:
            try:
                act()
                while not ended.wait(PAUSE.total_seconds()):
                    act()
            except Exception as error:  # noqa: BLE001 - a thread's exception would be lost
                self.report(f"beside the migration: {error!r}")

        thread = Thread(target=repeat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(self.within.total_seconds())

    def operate(self) -> None:
        """Run each command of the operator once while batches wait."""
        if self.world.waiting():
            for command in OPERATOR:
                self.world.rowferry(*command.split(), statuses=(0, 1))  # 1: there are errors, or not all is done
            self.count(OPERATED, len(OPERATOR))

    def look(self, roles: list[str]) -> None:
        """Read the exporter's metrics, and report who is no such role."""
        for row in self.world.query(STRANGERS, roles):
            self.report(f"not a role with the least rights: {row['stranger']}")
        self.count(READ, round(sum_of(scrape(self.port), "rowferry_exporter_up")))

    @contextmanager
    def running_exporter(self) -> Iterator[int]:
        """Yield the port on which an exporter serves its metrics."""
        environment = {**os.environ, **self.world.migration.environment, "DATABASE_URL": self.world.logins["exporter"]}
        command = [sys.executable, "-m", "rowferry_cli", "exporter", "--port=0", "--log-format=json"]
        log = self.world.folder / "exporter.log"
        with log.open("wb") as out, subprocess.Popen(command, env=environment, stderr=out, stdout=out) as exporter:
            try:
                wait_for(lambda: '"serving metrics"' in log.read_text(), deadline=self.within, by=[exporter])
                (line,) = [line for line in log.read_text().splitlines() if '"serving metrics"' in line]
                yield find_served_port(line)
            finally:
                exporter.terminate()
