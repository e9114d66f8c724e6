"""Servers and commands for the search for secrets; their secrets cannot be mistaken for anything else."""

import os
from pathlib import Path
from uuid import uuid4

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import S3Server
from support.postgres.ordinary import as_owner
from support.processes.cli import run_in_own_process
from support.processes.worker_process import WorkerProcess
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
