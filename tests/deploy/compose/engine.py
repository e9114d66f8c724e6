"""A Docker engine for the proof: the one that runs here, else one of our own, started by hand and gone afterwards."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import click

TOP = Path(__file__).parents[3]
EMPTY_FIREWALL = b"".join(
    b"*%s\n%s\nCOMMIT\n" % (table, b"\n".join(b":%s ACCEPT [0:0]" % chain for chain in chains))
    for table, chains in {
        b"filter": (b"INPUT", b"FORWARD", b"OUTPUT"),
        b"nat": (b"PREROUTING", b"INPUT", b"OUTPUT", b"POSTROUTING"),
    }.items()
)
"""What iptables-save does not print where no rule was ever set."""
COMPOSE = TOP / ".tools" / "bin" / "docker-compose"


class Impossible(Exception):
    """One sentence: why nothing can be proven here."""


@dataclass(frozen=True)
class Engine:
    """Where `docker` and `docker compose` go."""

    host: str
    is_own: bool
    environment: dict[str, str] = field(default_factory=dict)

    def can_pull(self) -> bool:
        """Return whether this engine has the images of compose.yaml, or gets them: not every host has a registry."""
        try:
            images = {image for image in self.compose("config", "--images").split() if not image.startswith("rowferry")}
            for image in sorted(images):
                self._have(image)
        except (RuntimeError, subprocess.TimeoutExpired):
            return False
        return True

    def _have(self, image: str) -> None:
        try:
            self.docker("image", "inspect", image, "--format", "{{.Id}}")
        except RuntimeError:
            self.docker("pull", "--quiet", image, seconds=600)

    def docker(self, *arguments: object, seconds: float = 120, check: bool = True) -> str:
        """Run `docker` and return what it printed."""
        return self._run(["docker", *map(str, arguments)], seconds, check=check)

    def compose(self, *arguments: object, seconds: float = 300, check: bool = True) -> str:
        """Run `docker compose` on compose.yaml and the override, and return what it printed."""
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


@contextmanager
def find_or_start_engine(environment: dict[str, str]) -> Iterator[Engine]:
    """Yield the engine that DOCKER_HOST or the usual socket leads to, else one of our own. Raises Impossible."""
    there = Engine(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"), is_own=False, environment=environment)
    if shutil.which("docker") and _answers(there):
        yield there
        return
    _install_engine()
    folder = Path(mkdtemp(prefix="rf-docker-"))
    engine = Engine(f"unix://{folder}/sock", is_own=True, environment=environment)
    with _network_as_it_was():
        daemon = _start(folder, engine)
        try:
            yield engine
        finally:
            _stop(daemon)
            _unmount_below(folder)
            # Many small files: rm is quicker than Python at them.
            subprocess.run(["rm", "-rf", str(folder)], check=False, timeout=300)


@contextmanager
def _network_as_it_was() -> Iterator[None]:
    """Put the firewall and the forwarding of this host back to what they were, and take the engine's bridges away."""
    bridges = _list_bridges()
    forwarding = Path("/proc/sys/net/ipv4/ip_forward")
    rules, forwards = subprocess.run(["iptables-save"], capture_output=True, check=False).stdout, forwarding.read_text()
    try:
        yield
    finally:
        subprocess.run(["iptables-restore"], input=rules or EMPTY_FIREWALL, capture_output=True, check=False)
        forwarding.write_text(forwards)
        for bridge in _list_bridges() - bridges:
            subprocess.run(["ip", "link", "delete", bridge], capture_output=True, check=False)


def _list_bridges() -> set[str]:
    return {path.parent.name for path in Path("/sys/class/net").glob("br-*/bridge")}


def _answers(engine: Engine) -> bool:
    try:
        engine.docker("version", "--format", "{{.Server.Version}}", seconds=10)
    except (RuntimeError, subprocess.TimeoutExpired):
        return False
    return True


def _install_engine() -> None:
    """Have dockerd and docker on PATH, from Debian's packages where they are missing; no service is started."""
    if shutil.which("dockerd") and shutil.which("docker"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Impossible("No Docker engine answers here, and one can be started only by root on Debian.")
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "docker.io", "iptables"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["apt-get", "update", "-qq"], install):
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    if ended.returncode:
        raise Impossible(f"Debian's docker.io cannot be installed here: {ended.stderr.strip().splitlines()[-1:]}.")


def _start(folder: Path, engine: Engine) -> subprocess.Popen[bytes]:
    """Start dockerd with all it has in `folder`."""
    if os.geteuid() != 0:
        raise Impossible("No Docker engine answers here, and only root may start one.")
    log_path = folder / "log"
    command = ["dockerd", "--host", engine.host, "--bridge=none"]
    for option, name in (("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")):
        command += [option, str(folder / name)]
    with log_path.open("wb") as log:
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + 60
    while not _answers(engine):
        if daemon.poll() is not None or time.monotonic() > deadline:
            _stop(daemon)
            words = log_path.read_text(errors="replace").strip().splitlines()[-1:]
            shutil.rmtree(folder, ignore_errors=True)
            raise Impossible(f"No Docker engine runs here: {words}.")
        time.sleep(0.3)
    return daemon


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(60)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _unmount_below(folder: Path) -> None:
    """Unmount what an engine that had to be killed left behind."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    below = [line.split()[1] for line in mounts if line.split()[1].startswith(f"{folder}/")]
    for mount in sorted(below, reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True, timeout=30)


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
