"""Writes the dashboards and the alerts: `python dashboards/generate.py [FOLDER]`, a folder for the dashboards alone."""

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from migration_board import build_migration_board
from workers_board import build_workers_board
from write_alerts import write_alerts

FOLDER = Path(__file__).parent / "grafana" / "dashboards"


def render(board: Dashboard) -> str:
    """Return the JSON of a dashboard, with its panels numbered from 1."""
    document = json.loads(json.dumps(board.build(), cls=JSONEncoder))
    for number, panel in enumerate(document["panels"], start=1):
        panel["id"] = number
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def main(folder: Path = FOLDER) -> None:
    """Write both dashboards, and the alerts where all is written in its place."""
    boards = {"migration": build_migration_board(), "workers": build_workers_board()}
    for name, board in boards.items():
        (folder / f"{name}.json").write_text(render(board), encoding="utf-8")
    if folder == FOLDER:
        write_alerts()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
