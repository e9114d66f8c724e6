"""The units of systemd as the tests read them."""

from pathlib import Path

import yaml

from support.checkout import ROOT

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
