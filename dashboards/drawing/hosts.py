"""Hosts on one machine: each has a name and a file /etc/hosts of its own, and runs a worker. As root, on Linux."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rowferry_lab.servers.server_process import find_free_port

ENTER = 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"'
GRACE_SECONDS = 60


@dataclass(frozen=True)
class Worker:
    """A worker command on a host of its own."""

    host: str
    metrics_port: int
    process: subprocess.Popen[bytes]


@contextmanager
def worker_on(host: str, localhost: str, folder: Path, *options: str) -> Iterator[Worker]:
    """Yield a worker on a host of this name, for which `localhost` is this address; end it afterwards."""
    hosts = folder / f"{host}.hosts"
    hosts.write_text(f"{localhost} localhost\n127.0.0.1 {host}\n", encoding="utf-8")
    port = find_free_port()
    command = [
        "unshare", "--uts", "--mount", "sh", "-c", ENTER, host, str(hosts),
        sys.executable, "-m", "rowferry_cli", "worker", "--metrics-port", str(port), "--log-format", "json", *options,
    ]  # fmt: skip
    with (folder / f"{host}.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ)
    try:
        yield Worker(host, port, process)
    finally:
        process.terminate()
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
