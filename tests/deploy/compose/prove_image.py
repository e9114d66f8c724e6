"""`make test-image`: the container image itself, built and run: labels, contents, health check, signals, size."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from tempfile import TemporaryDirectory

import click
import yaml
from engine import TOP, Engine, Proof, find_engine, tell_end

TAG = "rowferry:image-proof"
DATABASE = "rowferry-image-proof-database"
URL = "postgresql://postgres:proof@127.0.0.1:5432/proof"
HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges:true")
OFTEN = ("--health-interval=1s", "--health-timeout=3s", "--health-start-period=1s", "--health-retries=2")
SERVICES = ("s3", "signin", "sso", "sso-oidc", "sts")
MAKE_CLIENTS = f"""
import boto3
for service in {SERVICES}:
    boto3.client(service, region_name="eu-central-1", aws_access_key_id="a", aws_secret_access_key="b")
try:
    boto3.client("ec2", region_name="eu-central-1")
except Exception as error:
    print(type(error).__name__)
"""
FILES = "find /opt/rowferry -type f -exec sha256sum {} + | sort --key 2"


class ImageProof(Proof):
    def __init__(self, engine: Engine, postgres: str, folder: Path) -> None:
        super().__init__(engine)
        self._postgres = postgres
        self._folder = folder

    def run(self) -> None:
        self.take(self.build, self.describe, self.search, self.use_services, self.repeat)
        with self._database():
            self.take(self.watch_worker, self.watch_exporter, self.watch_others)

    def build(self) -> str:
        return self._build(TAG).removeprefix(f"{TAG}: ")

    def _build(self, tag: str, *more: str) -> str:
        environment = {**os.environ, "DOCKER_HOST": self._engine.host, "SOURCE_DATE_EPOCH": "1700000000"}
        command = [sys.executable, "tools/build-image", f"--tag={tag}", "--", *more]
        ended = subprocess.run(
            command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        assert ended.returncode == 0, ended.stderr[-2000:]
        return ended.stdout.strip()

    def describe(self) -> str:
        (image,) = json.loads(self._engine.docker("image", "inspect", TAG))
        labels = {name.removeprefix("org.opencontainers.image."): value for name, value in _labels(image)}
        wanted = "title description licenses vendor version revision created url source documentation"
        assert set(wanted.split()) <= {name for name, value in labels.items() if value}, labels
        version = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]
        assert labels["version"] == version
        assert labels["created"] == "2023-11-14T22:13:20Z"
        assert self._run("--version") == f"rowferry {version}"
        return f"has {len(wanted.split())} labels: the version of pyproject.toml, created at SOURCE_DATE_EPOCH, …"

    def search(self) -> str:
        tools = "for tool in pip pip3 gcc cc ld make git; do command -v $tool; done; python -m pip --version"
        found = self._run("-c", tools, entrypoint="sh", check=False)
        assert "No module named pip" in found, found
        assert len(found.splitlines()) == 1, found
        return "holds neither pip nor a compiler"

    def use_services(self) -> str:
        assert self._run("-c", MAKE_CLIENTS, entrypoint="python") == "UnknownServiceError"
        return f"knows these services of AWS and no others: {', '.join(SERVICES)}"

    def repeat(self) -> str:
        files = self._run("-c", FILES, entrypoint="sh")
        self._build(f"{TAG}-again", "--no-cache")
        assert files == self._run("-c", FILES, entrypoint="sh", image=f"{TAG}-again"), "a second build gave other files"
        return f"built again without a cache: the same {len(files.splitlines()):,} files, byte by byte"

    @contextmanager
    def _database(self) -> Iterator[None]:
        (self._folder / "password").write_text("proof")
        (self._folder / "password").chmod(0o644)
        given = ("--env=POSTGRES_DB=proof", "--env=POSTGRES_PASSWORD_FILE=/password")
        mount = f"--volume={self._folder}/password:/password:ro"
        # The containers share one network namespace, which leads nowhere else.
        name = ("--network=none", f"--name={DATABASE}", "--user=999:999")
        self._engine.docker("run", "--detach", *name, *given, mount, self._postgres)
        try:
            self.wait("PostgreSQL", self._is_prepared)
            yield
        finally:
            self._engine.docker("rm", "--force", "--volumes", DATABASE)

    def _is_prepared(self) -> bool:
        try:
            self._run("init", beside_database=True)
        except RuntimeError:
            return False
        return True

    def watch_worker(self) -> str:
        stop_and_go = self._prove_health("worker", "--metrics-host", "0.0.0.0", "--metrics-port", "9470")
        return f"worker on a port of its own, read-only root, no capability: {stop_and_go}"

    def watch_exporter(self) -> str:
        return f"exporter on its usual port: {self._prove_health('exporter')}"

    def watch_others(self) -> str:
        with self._container("worker") as name:
            self.wait("a healthy container", lambda: self._health(name) == "healthy")
        with self._container("infinity", options=["--entrypoint=sleep"]) as name:
            self.wait("a healthy container", lambda: self._health(name) == "healthy")
        return "what serves no /healthz is not called unhealthy: a worker without a port, another program"

    def _prove_health(self, *command: str) -> str:
        """Freeze the first process of a healthy container, thaw it, and stop it."""
        with self._container(*command) as name:
            self.wait("a healthy container", lambda: self._health(name) == "healthy")
            pid = int(self._engine.docker("inspect", "--format={{.State.Pid}}", name))
            os.kill(pid, SIGSTOP)
            self.wait("an unhealthy container", lambda: self._health(name) == "unhealthy")
            os.kill(pid, SIGCONT)
            self.wait("a healthy container again", lambda: self._health(name) == "healthy")
            self._engine.docker("stop", "--time=45", name)
            status = self._engine.docker("inspect", "--format={{.State.ExitCode}}", name)
            assert status == "0", self._engine.docker("logs", name)[-2000:]
        return "healthy; frozen: unhealthy; thawed: healthy; SIGTERM: ended with 0"

    @contextmanager
    def _container(self, *command: str, options: Sequence[str] = ()) -> Iterator[str]:
        name = "rowferry-image-proof"
        beside = (f"--network=container:{DATABASE}", f"--env=DATABASE_URL={URL}")
        run = ("run", "--detach", f"--name={name}", *HARDENED, *OFTEN, *beside, *options)
        self._engine.docker(*run, TAG, *command)
        try:
            yield name
        except BaseException:
            click.echo(self._engine.docker("logs", "--tail=20", name, check=False), err=True)
            click.echo(self._engine.docker("inspect", "--format={{json .State.Health}}", name, check=False), err=True)
            raise
        finally:
            self._engine.docker("rm", "--force", name)

    def _health(self, name: str) -> str:
        return self._engine.docker("inspect", "--format={{.State.Health.Status}}", name)

    def _run(
        self,
        *command: str,
        entrypoint: str = "rowferry",
        image: str = TAG,
        beside_database: bool = False,
        check: bool = True,
    ) -> str:
        network = f"--network=container:{DATABASE}" if beside_database else "--network=none"
        options = (*HARDENED, network, f"--env=DATABASE_URL={URL}", f"--entrypoint={entrypoint}")
        return self._engine.docker("run", "--rm", *options, image, *command, check=check)


def _labels(image: dict[str, dict[str, dict[str, str]]]) -> Iterator[tuple[str, str]]:
    yield from image["Config"]["Labels"].items()


def prove() -> None:
    engine = find_engine({"COMPOSE_PROJECT_NAME": "rowferry-image-proof"})
    postgres = yaml.safe_load((TOP / "compose.yaml").read_text())["services"]["postgres"]["image"]
    click.echo(f"worker/Dockerfile on Docker {engine.docker('version', '--format', '{{.Server.Version}}')}")
    try:
        with TemporaryDirectory(prefix="rf-image-") as folder:
            Path(folder).chmod(0o755)
            ImageProof(engine, postgres, Path(folder)).run()
    finally:
        engine.docker("image", "rm", "--force", TAG, f"{TAG}-again", check=False)


if __name__ == "__main__":
    tell_end(prove)
