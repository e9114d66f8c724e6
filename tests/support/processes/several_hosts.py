"""Several hosts on one machine: network namespaces on a bridge, servers in one of them, workers in the others."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from support.checkout import TESTS
from support.s3.buckets import find_versitygw

HUB_ADDRESS = "10.77.0.1"
WORKER = ("-m", "rowferry_cli", "worker", "--processes=1", "--log-format=json")
WAITING = "select count(*) from rowferry.batch_queue where status = 'INIT'"
LEGACY = "select count(*) from public.avatars where path not like 'avatar/%'"
UNBALANCED = """
select count(*) from rowferry.batch_queue where status <> 'DONE' or entry_count <> migrated + kept
"""
SHARES = """
select w.host, count(*) as batches from rowferry.batch_queue as q join rowferry.worker as w on q.worker_id = w.id
group by w.host order by w.host
"""
SERVE = ("-m", "support.processes.several_hosts_servers")


def why_not() -> str | None:
    """Return why there can be no hosts here; None when there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux makes network namespaces"
    if not all(map(shutil.which, ("ip", "unshare", "hostname"))):
        return "iproute2 is not installed here"
    probe = f"rf-{secrets.token_hex(3)}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode:
        return "this machine allows no network namespaces"
    ip("netns", "del", probe)
    return None


def ip(*arguments: str, inside: str | None = None) -> None:
    """Run `ip`, in a namespace if one is named."""
    command = ["ip", *(["-netns", inside] if inside else []), *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)


@dataclass(frozen=True)
class Host:
    """A network namespace with one address, and a name of its own for what runs in it."""

    name: str
    namespace: str
    port: str
    """The hub's end of its cable."""
    hub: str

    def command(self, *command: str) -> list[str]:
        """Return what runs a command on this host."""
        rename = 'hostname "$0" && exec "$@"'
        return ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "sh", "-c", rename, self.name, *command]

    def cut(self) -> None:
        """Lose every packet from and to this host, and tell neither side."""
        ip("link", "set", self.port, "nomaster", inside=self.hub)

    def mend(self) -> None:
        """Connect the cable again."""
        ip("link", "set", self.port, "master", "switch", inside=self.hub)


@contextmanager
def network(count: int) -> Iterator[tuple[str, list[Host]]]:
    """Yield the namespace of the servers, and hosts on its bridge; all of them vanish afterwards."""
    unique = secrets.token_hex(3)
    hub = f"rf-{unique}-hub"
    with ExitStack() as until:

        def add(namespace: str) -> None:
            ip("netns", "add", namespace)
            until.callback(ip, "netns", "del", namespace)
            ip("link", "set", "lo", "up", inside=namespace)

        add(hub)
        ip("link", "add", "switch", "type", "bridge", inside=hub)
        ip("address", "add", f"{HUB_ADDRESS}/24", "dev", "switch", inside=hub)
        ip("link", "set", "switch", "up", inside=hub)
        hosts = [Host(f"host-{n}", f"rf-{unique}-{n}", f"port{n}", hub) for n in range(1, count + 1)]
        for number, host in enumerate(hosts, start=1):
            add(host.namespace)
            ip("link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", host.namespace, inside=hub)
            ip("link", "set", host.port, "master", "switch", "up", inside=hub)
            ip("address", "add", f"10.77.0.{10 + number}/24", "dev", "eth0", inside=host.namespace)
            ip("link", "set", "eth0", "up", inside=host.namespace)
        yield hub, hosts


class Hosts:
    """Hosts, the servers that they share, and the workers on them."""

    def __init__(self, hub: str, hosts: Sequence[Host], served: Mapping[str, Any], folder: Path) -> None:
        """Take what `network` and the servers' process said."""
        self.hosts = list(hosts)
        self._hub = hub
        self._folder = folder
        self.environment: dict[str, str] = served["environment"]
        self._connection = psycopg.Connection[DictRow].connect(
            served["socket_dsn"], autocommit=True, row_factory=dict_row
        )

    def close(self) -> None:
        self._connection.close()

    def query(self, query: str) -> list[dict[str, Any]]:
        """Ask PostgreSQL through its unix socket, which every namespace sees."""
        return self._connection.execute(query.encode()).fetchall()

    def ask(self, query: str) -> Any:
        """Return the one value of the one row."""
        (row,) = self.query(query)
        (value,) = row.values()
        return value

    def run(self, *command: str) -> str:
        """Run a rowferry command next to the servers."""
        line = ["ip", "netns", "exec", self._hub, sys.executable, "-m", "rowferry_cli", *command]
        environment = {**os.environ, **self.environment}
        ended = subprocess.run(
            line, env=environment, cwd=self._folder, capture_output=True, text=True, timeout=300, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    @contextmanager
    def workers(self, each: int) -> Iterator[dict[str, list[subprocess.Popen[bytes]]]]:
        """Yield running workers, by the name of their host; kill those that are left in the end."""
        started: dict[str, list[subprocess.Popen[bytes]]] = {}
        try:
            for host in self.hosts:
                for number in range(each):
                    command = host.command(sys.executable, *WORKER)
                    log = self._folder / f"{host.name}-{number}.log"
                    started.setdefault(host.name, []).append(self._start(command, log))
            yield started
        finally:
            for workers in started.values():
                for worker in workers:
                    if worker.poll() is None:
                        worker.kill()
                    worker.wait()

    def _start(self, command: Sequence[str], log_path: Path) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self.environment}
        with log_path.open("ab") as log:
            return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


@contextmanager
def start_hosts(count: int, folder: Path) -> Iterator[Hosts]:
    """Yield `count` hosts that reach a PostgreSQL and an S3 server over their bridge."""
    with network(count) as (hub, hosts):
        command = ["ip", "netns", "exec", hub, sys.executable, *SERVE, HUB_ADDRESS, str(find_versitygw() or "")]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        ) as servers:
            assert servers.stdout is not None
            line = servers.stdout.readline()
            assert line, "the servers did not start"
            served = json.loads(line)
            (folder / "rowferry.toml").write_text(served["plan"])
            found = Hosts(hub, hosts, served, folder)
            try:
                yield found
            finally:
                found.close()
                servers.communicate(timeout=60)  # closing its input ends it
