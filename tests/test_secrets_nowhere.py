"""No secret is ever seen: not in a log, a table, a session, a metric, a span, a process title or an error.

One test runs whole migrations with secrets that nobody could mistake, and searches every place; the others plant a
secret in each of these places, and the same search finds it there.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from haystack import Haystack, forms_of
from processes import wait_for
from rowferry.demo.postgres import EmbeddedPostgres
from rowferry.demo.s3_server import S3Server, VersityServer
from scrape import fetch, find_served_port, served_port
from servers import connect_s3, find_versitygw
from stand_in import StandIn, answer
from worker_process import WorkerProcess

UNIQUE = uuid4().hex
SECRETS = {
    name: f"{name.replace(' ', '-')}+/%25 {UNIQUE}"
    for name in (
        "password of the database",
        "password of the migration role",
        "password of an unreachable database",
        "legacy secret",
        "production secret",
        "session token",
        "wrong secret",
    )
} | {"legacy secret": f"legacy-secret+{UNIQUE}", "wrong secret": f"wrong-secret+{UNIQUE}"}
LOUD = {"log_statement": "all", "log_connections": "on", "log_disconnections": "on", "log_error_verbosity": "verbose"}
"""PostgreSQL logs every statement with its parameters."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(password=SECRETS["password of the database"], settings=LOUD) as server:
        yield server


@pytest.fixture(scope="module")
def legacy_server() -> Iterator[S3Server]:
    """A server that checks secrets, and has the distinctive one."""
    program = find_versitygw()
    if program is None:
        pytest.skip("versitygw is not here: `make test` builds it where `go` is installed")
    server = VersityServer(program)
    server.secret_key = SECRETS["legacy secret"]
    with server:
        yield server


class Stage:
    """A plan, files with the secrets, and a folder for everything else that commands write."""

    def __init__(self, folder: Path, postgres: EmbeddedPostgres, legacy: S3Server, production: S3Server) -> None:
        self.work, vault = folder / "work", folder / "vault"
        self.dsn = postgres.dsn()
        for made in (self.work, vault):
            made.mkdir()
        contents = {
            "DATABASE_URL": self.dsn,
            "ROWFERRY_ROLE_PASSWORD": SECRETS["password of the migration role"],
            "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": SECRETS["legacy secret"],
            "ROWFERRY_PRODUCTION_SECRET_ACCESS_KEY": SECRETS["production secret"],
            "ROWFERRY_PRODUCTION_SESSION_TOKEN": SECRETS["session token"],
        }
        self.environment = {
            "ROWFERRY_LEGACY_ACCESS_KEY_ID": legacy.access_key,
            "ROWFERRY_PRODUCTION_ACCESS_KEY_ID": production.access_key,
        }
        for name, value in contents.items():
            (vault / name).write_text(value + "\n")
            self.environment[f"{name}_FILE"] = str(vault / name)
        self.plain = {**self.environment, **contents, **{f"{name}_FILE": "" for name in contents}}
        """The same secrets in the environment itself."""
        (self.work / "rowferry.toml").write_text(
            f'[migration]\nname = "avatars"\nsimulated = true\nmax_attempts = 2\n'
            f'[legacy]\nbucket = "old-{UNIQUE}"\nendpoint_url = "{legacy.endpoint_url}"\n'
            f'[production]\nbucket = "new-{UNIQUE}"\nendpoint_url = "{production.endpoint_url}"\n'
            '[[entries]]\ntable = "public.avatars"\nid = "id"\nkey = "path"\nfrom = "image/"\nto = "avatar/"\n'
        )

    def run(self, haystack: Haystack, *arguments: str, expected: int = 0, **environment: str) -> str:
        """Run a command to its end, note what it says, and return it."""
        done = subprocess.run(
            [sys.executable, "-m", "rowferry", *arguments],
            env={**os.environ, **(environment or self.environment)},
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        said = done.stdout + done.stderr
        haystack.add(f"output {arguments[0]}", said)
        assert done.returncode == expected, said
        return said

    def start_worker(self, name: str, *arguments: str, **environment: str) -> WorkerProcess:
        options = ["--verbose", "--metrics-port", "0", *arguments]
        return WorkerProcess(options, {**os.environ, **self.environment, **environment}, self.work / f"{name}.log")


@pytest.fixture
def stage(tmp_path: Path, postgres: EmbeddedPostgres, legacy_server: S3Server, moto: S3Server) -> Stage:
    return Stage(tmp_path, postgres, legacy_server, moto)


def lose_an_object(stage: Stage, legacy: S3Server) -> None:
    """Delete the object of one legacy row."""
    client = connect_s3(legacy)
    key = client.list_objects_v2(Bucket=f"old-{UNIQUE}")["Contents"][0]["Key"]
    client.delete_object(Bucket=f"old-{UNIQUE}", Key=key)
    client.close()


def prepare_and_plan(stage: Stage, haystack: Haystack, legacy: S3Server) -> None:
    stage.run(haystack, "prepare", "40", "--yes", "--clean-production")
    stage.run(haystack, "init")
    stage.run(haystack, "init", "--grants", "rowferry_avatars", "--apply")
    lose_an_object(stage, legacy)
    stage.run(haystack, "check")
    stage.run(haystack, "plan")
    stage.run(haystack, "status", "--json")
    stage.run(haystack, "enqueue", "--batch-size", "5", "--yes")


def work(stage: Stage, haystack: Haystack, spans: str) -> None:
    """Run a worker that says everything it can, and two that cannot work."""
    with ExitStack() as until:
        wrong = {"ROWFERRY_LEGACY_SECRET_ACCESS_KEY": SECRETS["wrong secret"]}
        barred = stage.start_worker("barred", ROWFERRY_LEGACY_SECRET_ACCESS_KEY_FILE="", **wrong)
        until.callback(barred.kill)
        assert barred.wait() == 2, barred.log
        worker = stage.start_worker("worker", "--trace", OTEL_EXPORTER_OTLP_ENDPOINT=spans)
        until.callback(worker.kill)
        port = served_port(worker)
        wait_for(lambda: worker.messages().count("batch finished") >= 3)
        log = until.enter_context((stage.work / "exporter.log").open("w"))
        exporter = subprocess.Popen(
            [sys.executable, "-m", "rowferry", "exporter", "--port", "0"],
            env={**os.environ, **stage.plain},
            cwd=stage.work,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        until.callback(exporter.communicate)
        until.callback(exporter.kill)
        wait_for(lambda: "serving" in (stage.work / "exporter.log").read_text())
        line = next(line for line in (stage.work / "exporter.log").read_text().splitlines() if "serving" in line)
        haystack.add("metrics of the exporter", fetch(find_served_port(line), "/metrics")[1])
        haystack.add("metrics of the worker", fetch(port, "/metrics")[1])
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def look_and_repair(stage: Stage, haystack: Haystack) -> None:
    stage.run(haystack, "errors", "--entries", "--json")
    stage.run(haystack, "watch", "--once")
    stage.run(haystack, "report", "--manifest", "manifest.jsonl", expected=1)
    stage.run(haystack, "requeue", "--all")
    stage.run(haystack, "migrate", "--yes", "--verbose", "--log-file", "migrate.log", expected=1, **stage.plain)
    stage.run(haystack, "verify", "--yes", "--log-file", "verify.log")
    stage.run(haystack, "clean-uploads", "--yes")


def fail(stage: Stage, haystack: Haystack) -> None:
    """Let everything fail that has a secret to tell."""
    password = SECRETS["password of an unreachable database"].replace(" ", "%20").replace("/", "%2F")
    for url in (
        f"postgresql://me:{password}@127.0.0.1:9/none",
        f"postgresql://me:{password}@127.0.0.1:port/none",
        f"host=127.0.0.1 port=9 password='{password}",
        stage.dsn.rpartition("/")[0] + "/no_such_database",
    ):
        for command in ("status", "worker"):
            said = stage.run(haystack, command, expected=2, **{**stage.plain, "DATABASE_URL": url})
            assert said.count("\n") == 1
    wrong = {**stage.plain, "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": SECRETS["wrong secret"]}
    said = stage.run(haystack, "check", expected=2, **wrong)
    assert "legacy bucket" in said
    stage.run(haystack, "status", expected=2, **wrong)
    both = {**stage.environment, "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": SECRETS["wrong secret"]}
    assert "are both set" in stage.run(haystack, "check", expected=2, **both)
    token_alone = {**stage.plain, "ROWFERRY_PRODUCTION_SECRET_ACCESS_KEY": "", "ROWFERRY_PRODUCTION_ACCESS_KEY_ID": ""}
    assert "SESSION_TOKEN is set but" in stage.run(haystack, "check", expected=2, **token_alone)


MARKS = {
    "output prepare": "Made 40 rows",
    "output check": "ROWFERRY_LEGACY_SECRET_ACCESS_KEY",
    "output status": "cannot be reached",
    "output report": "Not settled",
    "file worker.log": '"message": "object copied"',
    "file barred.log": "The legacy bucket old-",
    "file migrate.log": "batch finished",
    "file verify.log": "batch finished",
    "file manifest.jsonl": "NoSuchKey",
    "file exporter.log": "serving",
    "server log": "rowferry.claim_batch",
    "table migration": "image/",
    "table entry_failure": "NoSuchKey",
    "table batch_attempt": "DONE",
    "table progress": "avatars",
    "table pg_roles": "rowferry_avatars",
    "activity": "rowferry worker ",
    "process cmdline": "-m rowferry worker --log-format json --verbose",
    "process comm": "python",
    "metrics of the worker": "rowferry_entries_total",
    "metrics of the exporter": "rowferry_queue_entries",
    "span": "rowferry.batch.id",
}
"""What must have been seen at each place: a search in an empty place finds nothing, either."""


@pytest.mark.timeout(300)
def test_no_secret_is_seen_anywhere(stage: Stage, postgres: EmbeddedPostgres, legacy_server: S3Server) -> None:
    haystack = Haystack()
    with haystack.watching(stage.dsn), haystack.collecting_spans() as spans:
        prepare_and_plan(stage, haystack, legacy_server)
        work(stage, haystack, spans)
        look_and_repair(stage, haystack)
        fail(stage, haystack)
    haystack.add_tables(stage.dsn)
    haystack.add_files(stage.work)
    haystack.add("server log", (postgres.folder / "server.log").read_text(errors="replace"))
    assert [place for place, mark in MARKS.items() if mark not in haystack.text(place)] == []
    assert haystack.find(SECRETS) == []


# The search itself

PLANTED = f"planted+/% secret {UNIQUE}"


def plant_in_a_table(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(stage.dsn, autocommit=True) as connection:
        plan = json.dumps({"legacy": {"password": PLANTED}})
        connection.execute("insert into rowferry.migration (name, plan) values ('planted', %s)", (plan,))
        haystack.add_tables(stage.dsn)
        connection.execute("delete from rowferry.migration where name = 'planted'")


def plant_in_a_session(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with haystack.watching(stage.dsn), psycopg.connect(stage.dsn, application_name=PLANTED[:60]):
        wait_for(lambda: PLANTED[:60] in haystack.text("activity"))


def plant_in_a_query(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with haystack.watching(stage.dsn), psycopg.connect(stage.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("select {}").format(PLANTED))
        wait_for(lambda: "planted" in haystack.text("activity"))


def plant_in_the_server_log(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(stage.dsn, autocommit=True) as connection:
        connection.execute("select %s", (PLANTED,))
    haystack.add("server log", (postgres.folder / "server.log").read_text(errors="replace"))


def plant_in_a_command_line(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    script = "import sys; sys.stdin.read()"
    with (
        haystack.watching(stage.dsn),
        subprocess.Popen([sys.executable, "-c", script, PLANTED], stdin=subprocess.PIPE) as process,
    ):
        wait_for(lambda: "planted" in haystack.text("process cmdline"))
        process.kill()


def plant_in_a_file(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    (stage.work / "deep").mkdir()
    (stage.work / "deep" / "worker.log").write_text(json.dumps({"error": PLANTED}))
    haystack.add_files(stage.work)


def plant_in_metrics(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with StandIn(answer(200, f'rowferry_build_info{{version="{PLANTED}"}} 1\n'.encode())) as server:
        haystack.add("metrics", fetch(int(server.endpoint_url.rpartition(":")[2]), "/metrics")[1])


def plant_in_a_span(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with haystack.collecting_spans() as url, urllib.request.urlopen(url, data=PLANTED.encode(), timeout=10):
        pass


def plant_in_an_error(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    stage.run(haystack, "status", f"--{PLANTED}", expected=2)


PLANTS: dict[str, Callable[[Haystack, Stage, EmbeddedPostgres], None]] = {
    "table migration": plant_in_a_table,
    "activity": plant_in_a_session,
    "server log": plant_in_the_server_log,
    "process cmdline": plant_in_a_command_line,
    "file deep/worker.log": plant_in_a_file,
    "metrics": plant_in_metrics,
    "span": plant_in_a_span,
    "output status": plant_in_an_error,
}


@pytest.fixture
def initialised(stage: Stage) -> Stage:
    stage.run(Haystack(), "init")
    return stage


@pytest.mark.parametrize("place", PLANTS)
def test_a_planted_secret_is_found(place: str, initialised: Stage, postgres: EmbeddedPostgres) -> None:
    haystack = Haystack()
    secrets = {"planted": PLANTED[:60], "other": f"other {UNIQUE}"}
    PLANTS[place](haystack, initialised, postgres)
    assert (place, "planted") in haystack.find(secrets)
    assert "other" not in {name for _, name in haystack.find(secrets)}


def test_a_secret_in_a_query_is_found(initialised: Stage, postgres: EmbeddedPostgres) -> None:
    haystack = Haystack()
    plant_in_a_query(haystack, initialised, postgres)
    assert ("activity", "planted") in haystack.find({"planted": PLANTED})


@pytest.mark.parametrize("disguise", range(5))
def test_a_secret_is_found_however_it_was_encoded(disguise: int) -> None:
    forms: list[Any] = sorted(forms_of('a+/% "secret"'))
    assert len(forms) >= 5
    haystack = Haystack()
    haystack.add("here", f"before {forms[disguise]} after")
    assert haystack.find({"it": 'a+/% "secret"'}) == [("here", "it")]
