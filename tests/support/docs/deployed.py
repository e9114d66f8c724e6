"""What deploy/kubernetes, compose.yaml and the units of systemd say, as tests read it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from support.checkout import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"


VERSIONS = ("1.29", "1.31", "1.33", "1.35", "1.36", "1.37")


Object = dict[str, Any]


def read(path: str) -> Object:
    """Return the objects of a file, by kind."""
    return {found["kind"]: found for found in yaml.safe_load_all((FOLDER / path).read_text())}


def find_pods(objects: Iterable[Object]) -> list[Object]:
    return [found["spec"]["template"]["spec"] for found in objects if found["kind"] in {"Deployment", "Job"}]


def list_containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", []), *pod["containers"]]


_DOCUMENT: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = _DOCUMENT["services"]
SECRETS: dict[str, dict[str, str]] = _DOCUMENT["secrets"]
ALLOWED = ("ROWFERRY_ALLOWED_ENDPOINTS", "ROWFERRY_ALLOWED_FUNCTIONS", "ROWFERRY_ALLOWED_SQL_FUNCTIONS")
"""What limits the plans of a worker, wherever it runs."""
GUARD = "own-secrets"
"""The service that lets nothing start on the demo's secrets."""
OWN = {"worker", "exporter", "prometheus", "grafana", GUARD}
"""The services of users who have servers of their own."""


UNIT = ROOT / "worker" / "rowferry-worker.service"
EXPORTER = ROOT / "exporter" / "rowferry-exporter.service"


CLOUD_INIT = ROOT / "worker" / "cloud-init.yaml"


def read_cloud_files() -> list[dict[str, str]]:
    """Return what cloud-init writes."""
    return yaml.safe_load(CLOUD_INIT.read_text())["write_files"]


def read_settings(unit: Path = UNIT) -> list[tuple[str, str]]:
    lines = [line for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


def find(name: str, unit: Path = UNIT) -> str:
    (value,) = [value for key, value in read_settings(unit) if key == name]
    return value
