"""A real Prometheus with the configuration and the rules of dashboards/prometheus."""

import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from rowferry_lab.servers.server_process import find_free_port

CONFIGURATION = Path(__file__).parent.parent / "prometheus"
SCRAPE_SECONDS = 2
START_SECONDS = 60


@contextmanager
def running(folder: Path, exporter_port: int | None) -> Iterator[int]:
    """Yield the port of a server that scrapes the exporter, and workers that are added; None: it has what is stored."""
    etc, port = folder / "prometheus", find_free_port()
    _configure(etc)
    if exporter_port is not None:
        _write_targets(etc / "targets" / "exporters.yml", {"": exporter_port})
    command = [
        "prometheus", f"--config.file={etc / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'metrics'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_until_ready(port)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def add_workers(folder: Path, ports: Mapping[str, int]) -> None:
    """Have the workers scraped, by the names of their hosts; Prometheus reads the file again when it changes."""
    _write_targets(folder / "prometheus" / "targets" / "workers.yml", ports)


def _configure(etc: Path) -> None:
    """Copy our configuration, made to scrape more often and to find targets in files only."""
    shutil.copytree(CONFIGURATION, etc)
    path = etc / "prometheus.yml"
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["global"] = {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{SCRAPE_SECONDS}s"}
    for job in found["scrape_configs"]:
        del job["dns_sd_configs"]
        for files in job["file_sd_configs"]:
            files["refresh_interval"] = "1s"
    path.write_text(yaml.safe_dump(found, sort_keys=False), encoding="utf-8")


def _write_targets(path: Path, ports: Mapping[str, int]) -> None:
    targets = [
        {"targets": [f"127.0.0.1:{port}"], **({"labels": {"host": host}} if host else {})}
        for host, port in ports.items()
    ]
    path.write_text(yaml.safe_dump(targets), encoding="utf-8")


def _wait_until_ready(port: int) -> None:
    """Return when the server answers; raises TimeoutError."""
    give_up_at = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up_at:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise TimeoutError(f"Prometheus was not ready within {START_SECONDS} s")
