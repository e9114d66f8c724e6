"""Writes the dashboards and the alerts: `python dashboards/generate.py [FOLDER]`, a folder for the dashboards alone."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from migration_board import build_migration_board
from workers_board import build_workers_board
from write_alerts import write_alerts

FOLDER = Path(__file__).parent / "grafana" / "dashboards"


def render(board: Dashboard) -> str:
    """Return the JSON of a dashboard, with its panels numbered from 1, and panels that show others' answers bound."""
    document = json.loads(json.dumps(board.build(), cls=JSONEncoder))
    numbers = {}
    for number, panel in enumerate(list_panels(document), start=1):
        panel["id"] = numbers[panel["title"]] = number
    for panel in list_panels(document):
        for target in panel.get("targets", []):
            if "panelId" in target:
                target["panelId"] = numbers[target["panelId"]]
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def list_panels(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield rows and panels, also those within closed rows."""
    for panel in document["panels"]:
        yield panel
        yield from panel.get("panels", [])


def main(folder: Path = FOLDER) -> None:
    """Write both dashboards, and the alerts where all is written in its place."""
    boards = {"migration": build_migration_board(), "workers": build_workers_board()}
    for name, board in boards.items():
        (folder / f"{name}.json").write_text(render(board), encoding="utf-8")
    if folder == FOLDER:
        write_alerts()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
