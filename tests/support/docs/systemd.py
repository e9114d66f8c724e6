"""The units of systemd as the tests read them."""

from pathlib import Path

from support.checkout import ROOT

UNIT = ROOT / "worker" / "rowferry-worker.service"
EXPORTER = ROOT / "exporter" / "rowferry-exporter.service"


def read_settings(unit: Path = UNIT) -> list[tuple[str, str]]:
    lines = [line for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


def find(name: str, unit: Path = UNIT) -> str:
    (value,) = [value for key, value in read_settings(unit) if key == name]
    return value
