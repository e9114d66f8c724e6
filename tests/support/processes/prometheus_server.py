"""A real Prometheus with the configuration of dashboards/prometheus, and what a test asks of it."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

from rowferry_lab.servers.server_process import find_free_port
from support.processes.processes import wait_for
from support.processes.scrape import fetch
from support.screens.grafana import FOLDER

PROGRAMS = {name: shutil.which(name) for name in ("prometheus", "promtool")}
MISSING = next((name for name, path in PROGRAMS.items() if path is None), None)
WHY_SKIPPED = f"{MISSING} is not on PATH; Debian's package `prometheus` has it"
CLUSTER = "here"
"""What the targets are labelled with, as those of one database are."""


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    port: int

    def is_ready(self) -> bool:
        with suppress(urllib3.exceptions.HTTPError):
            return fetch(self.port, "/-/ready")[0] == 200
        return False

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the `data` of an answer of the HTTP API."""
        return json.loads(fetch(self.port, f"/api/v1/{path}?{urlencode(parameters)}")[1])["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the present samples of an expression."""
        return self.ask("query", query=expression)["result"]

    def value(self, expression: str) -> float | None:
        """Return the one present value of an expression; None when there is none."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def query_range(self, expression: str, start: datetime, end: datetime) -> list[dict[str, Any]]:
        """Return the curves of an expression, a point a second."""
        bounds = {"start": str(start.timestamp()), "end": str(end.timestamp())}
        return self.ask("query_range", query=expression, step="1", **bounds)["result"]

    def up(self, job: str) -> int:
        """Return how many targets of a job are reached."""
        return int(self.value(f'sum(up{{job="{job}"}})') or 0)


def write_configuration(folder: Path, targets: Mapping[str, Sequence[int]]) -> Path:
    """Copy our configuration, made to scrape these jobs on these ports of this host every second."""
    shutil.copytree(FOLDER / "prometheus", folder, dirs_exist_ok=True)
    path = folder / "prometheus.yml"
    configuration = yaml.safe_load(path.read_text(encoding="utf-8"))
    configuration["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    for job in configuration["scrape_configs"]:
        del job["dns_sd_configs"]  # No such names here; the targets come from the same kind of file as elsewhere.
        (pattern,) = job["file_sd_configs"][0]["files"]
        addresses = [f"127.0.0.1:{port}" for port in targets[job["job_name"]]]
        target = [{"targets": addresses, "labels": {"cluster": CLUSTER}}]
        (folder / pattern.replace("*", "")).write_text(yaml.safe_dump(target), encoding="utf-8")
    path.write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    return path


@contextmanager
def running_prometheus(folder: Path, targets: Mapping[str, Sequence[int]]) -> Iterator[Prometheus]:
    """Yield a server that reaches its targets."""
    port = find_free_port()
    command = [
        str(PROGRAMS["prometheus"]),
        f"--config.file={write_configuration(folder / 'etc', targets)}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        server = Prometheus(port)
        wait_for(server.is_ready)
        wait_for(lambda: all(server.up(job) == len(ports) for job, ports in targets.items()))
        yield server
    finally:
        process.terminate()
        process.wait(100)
