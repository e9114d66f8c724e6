"""Servers and commands for the search for secrets; their secrets cannot be mistaken for anything else."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import S3Server
from support.postgres.ordinary import as_owner
from support.processes.cli import run_in_own_process
from support.processes.processes import wait_for
from support.processes.scrape import fetch, find_served_port, served_port
from support.processes.worker_process import WorkerProcess
from support.s3.buckets import connect_s3
from support.secrets.scanner import SecretScanner

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


class Environment:
    """A plan, files with the secrets, and a folder for everything else that commands write."""

    def __init__(self, folder: Path, postgres: EmbeddedPostgres, legacy: S3Server, production: S3Server) -> None:
        self.work, vault = folder / "work", folder / "vault"
        self.dsn = as_owner(postgres.dsn())
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

    def run(self, scanner: SecretScanner, *arguments: str, expected: int = 0, **environment: str) -> str:
        """Run a command to its end, note what it says, and return it."""
        found = {**os.environ, **(environment or self.environment)}
        done = run_in_own_process(arguments, found, self.work)
        said = done.stdout + done.stderr
        scanner.add(f"output {arguments[0]}", said)
        assert done.returncode == expected, said
        return said

    def start_worker(self, name: str, *arguments: str, **environment: str) -> WorkerProcess:
        options = ["--verbose", "--metrics-port", "0", *arguments]
        found = {**os.environ, **self.environment, **environment}
        return WorkerProcess(options, found, self.work / f"{name}.log", own_interpreter=True)


def lose_an_object(setup: Environment, legacy: S3Server) -> None:
    """Delete the object of one legacy row."""
    client = connect_s3(legacy)
    key = client.list_objects_v2(Bucket=f"old-{UNIQUE}")["Contents"][0]["Key"]
    client.delete_object(Bucket=f"old-{UNIQUE}", Key=key)
    client.close()


def prepare_and_plan(setup: Environment, scanner: SecretScanner, legacy: S3Server) -> None:
    setup.run(scanner, "prepare", "40", "--yes", "--clean-production")
    setup.run(scanner, "init")
    setup.run(scanner, "init", "--grants", "rowferry_avatars", "--apply")
    lose_an_object(setup, legacy)
    setup.run(scanner, "check")
    setup.run(scanner, "estimate")
    setup.run(scanner, "plan")
    setup.run(scanner, "status", "--json")
    setup.run(scanner, "enqueue", "--batch-size", "5", "--yes")


def work(setup: Environment, scanner: SecretScanner) -> None:
    """Run a worker that says everything it can, and two that cannot work."""
    with ExitStack() as until:
        wrong = {"ROWFERRY_LEGACY_SECRET_ACCESS_KEY": SECRETS["wrong secret"]}
        barred = setup.start_worker("barred", ROWFERRY_LEGACY_SECRET_ACCESS_KEY_FILE="", **wrong)
        until.callback(barred.kill)
        wait_for(lambda: "The legacy bucket old-" in barred.log)
        barred.signal(signal.SIGTERM)
        assert barred.wait() == 0, barred.log
        worker = setup.start_worker("worker")
        until.callback(worker.kill)
        port = served_port(worker)
        wait_for(lambda: worker.messages().count("batch finished") >= 3)
        log = until.enter_context((setup.work / "exporter.log").open("w"))
        exporter = subprocess.Popen(
            [sys.executable, "-m", "rowferry_cli", "exporter", "--port", "0"],
            env={**os.environ, **setup.plain},
            cwd=setup.work,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        until.callback(exporter.communicate)
        until.callback(exporter.kill)
        wait_for(lambda: "serving" in (setup.work / "exporter.log").read_text())
        line = next(line for line in (setup.work / "exporter.log").read_text().splitlines() if "serving" in line)
        scanner.add("metrics of the exporter", fetch(find_served_port(line), "/metrics")[1])
        scanner.add("metrics of the worker", fetch(port, "/metrics")[1])
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def look_and_repair(setup: Environment, scanner: SecretScanner) -> None:
    setup.run(scanner, "errors", "--entries", "--json")
    setup.run(scanner, "watch", "--once")
    setup.run(scanner, "report", "--manifest", "manifest.jsonl", "--html", "page.html", expected=1)
    setup.run(scanner, "requeue", "--all")
    setup.run(scanner, "migrate", "--yes", "--verbose", "--log-file", "migrate.log", expected=1, **setup.plain)
    setup.run(scanner, "verify", "--yes", "--log-file", "verify.log")
    setup.run(scanner, "clean-uploads", "--yes")


def fail(setup: Environment, scanner: SecretScanner) -> None:
    """Let everything fail that has a secret to tell."""
    password = SECRETS["password of an unreachable database"].replace(" ", "%20").replace("/", "%2F")
    for url in (
        f"postgresql://me:{password}@127.0.0.1:9/none",
        f"postgresql://me:{password}@127.0.0.1:port/none",
        f"host=127.0.0.1 port=9 password='{password}",
        setup.dsn.rpartition("/")[0] + "/no_such_database",
    ):
        for command in ("status", "worker"):
            said = setup.run(scanner, command, expected=2, **{**setup.plain, "DATABASE_URL": url})
            assert said.count("\n") == 1
    wrong = {**setup.plain, "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": SECRETS["wrong secret"]}
    said = setup.run(scanner, "check", expected=2, **wrong)
    assert "legacy bucket" in said
    setup.run(scanner, "status", expected=2, **wrong)
    setup.run(scanner, "estimate", expected=2, **wrong)
    both = {**setup.environment, "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": SECRETS["wrong secret"]}
    assert "are both set" in setup.run(scanner, "check", expected=2, **both)
    token_alone = {**setup.plain, "ROWFERRY_PRODUCTION_SECRET_ACCESS_KEY": "", "ROWFERRY_PRODUCTION_ACCESS_KEY_ID": ""}
    assert "SESSION_TOKEN is set but" in setup.run(scanner, "check", expected=2, **token_alone)


MARKS = {
    "output prepare": "Made 40 rows",
    "output check": "ROWFERRY_LEGACY_SECRET_ACCESS_KEY",
    "output estimate": "bytes to copy",
    "output status": "cannot be reached",
    "output report": "See why: rowferry errors",
    "file worker.log": '"message": "object copied"',
    "file barred.log": "The legacy bucket old-",
    "file migrate.log": "batch finished",
    "file verify.log": "batch finished",
    "file manifest.jsonl": "NoSuchKey",
    "file page.html": "NoSuchKey",
    "file exporter.log": "serving",
    "server log": "rowferry.claim_batch",
    "table migration": "image/",
    "table entry_failure": "NoSuchKey",
    "table batch_attempt": "DONE",
    "table progress": "avatars",
    "table pg_roles": "rowferry_avatars",
    "activity": "rowferry worker ",
    "process cmdline": "-m rowferry_cli worker --log-format json --verbose",
    "process comm": "python",
    "metrics of the worker": "rowferry_entries_total",
    "metrics of the exporter": "rowferry_queue_entries",
}
"""What must have been seen at each place: a search in an empty place finds nothing, either."""
