"""The Docker engine of this machine, and the steps of a proof on it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

TOP = Path(__file__).parents[3]
COMPOSE = TOP / ".tools" / "bin" / "docker-compose"


class Impossible(Exception):
    """One sentence: why nothing can be proven here."""


@dataclass(frozen=True)
class Engine:
    """Where `docker` and `docker compose` go."""

    host: str
    environment: dict[str, str]

    def docker(self, *arguments: object, seconds: float = 120, check: bool = True) -> str:
        """Run `docker` and return what it printed."""
        return self._run(["docker", *map(str, arguments)], seconds, check=check)

    def compose(self, *arguments: object, seconds: float = 300, check: bool = True) -> str:
        """Run `docker compose` on compose.yaml, and return what it printed."""
        return self._run([str(COMPOSE), *map(str, arguments)], seconds, check=check)

    def _run(self, command: list[str], seconds: float, *, check: bool) -> str:
        environment = {**os.environ, "DOCKER_HOST": self.host, "DOCKER_BUILDKIT": "0", **self.environment}
        ended = subprocess.run(
            command,
            cwd=TOP,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
        if check and ended.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout[-4000:]}")
        return ended.stdout.strip()


def find_engine(environment: dict[str, str]) -> Engine:
    """Return the engine that DOCKER_HOST or the usual socket leads to. Raises Impossible where none answers."""
    engine = Engine(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"), environment)
    if not shutil.which("docker"):
        raise Impossible("docker is not on PATH.")
    try:
        engine.docker("version", "--format", "{{.Server.Version}}", seconds=10)
    except (RuntimeError, subprocess.TimeoutExpired):
        raise Impossible(f"No Docker engine answers at {engine.host}.") from None
    return engine


class Proof:
    """Steps in an order; each returns what it has seen, or fails."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._began = engine, time.monotonic()

    def take(self, *steps: Callable[[], str]) -> None:
        for step in steps:
            seen = step()
            click.echo(f"  {click.style('✓', fg='green')} {time.monotonic() - self._began:5.0f} s  {seen}")

    def wait(self, what: str, condition: Callable[[], bool], *, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}"
            time.sleep(0.5)


def tell_end(prove: Callable[[], None]) -> None:
    """Prove something, and say what is left of it, or why nothing can be proven."""
    try:
        prove()
    except Impossible as reason:
        sys.exit(f"Nothing could be proven: {reason}")
    click.echo("Nothing is left of it on this machine.")
