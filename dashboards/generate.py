"""Writes the dashboards: `python dashboards/generate.py [FOLDER]`."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from migration_board import build_migration_board
from workers_board import build_workers_board

OF_A_MIGRATION, OF_THE_DATABASE = ("Pauses", "Paused"), ("Oldest transaction",)
"""Marks that shade the panels of their migration alone, and the panel that shows no migration."""
FOLDER = Path(__file__).parent / "grafana" / "dashboards"


def render_all() -> dict[str, str]:
    """Return the JSON of the dashboards, with panels numbered from 1 and links that name a panel's number."""
    boards = {"migration": build_migration_board(), "workers": build_workers_board()}
    documents = {name: number_panels(board) for name, board in boards.items()}
    numbers = find_numbers(documents)
    return {name: write_numbers(_dump(document), numbers) for name, document in documents.items()}


def number_panels(board: Dashboard) -> dict[str, Any]:
    """Return a dashboard as Grafana keeps it, with panels that show others' answers bound to these."""
    document = json.loads(json.dumps(board.build(), cls=JSONEncoder), object_hook=_show_links)
    numbers = {}
    for number, panel in enumerate(list_panels(document), start=1):
        panel["id"] = numbers[panel["title"]] = number
    for mark in document["annotations"]["list"]:
        if mark["name"] in OF_A_MIGRATION:
            others = [numbers[title] for title in OF_THE_DATABASE if title in numbers]
            mark["filter"] = {"exclude": True, "ids": others}
    for panel in list_panels(document):
        for target in panel.get("targets", []):
            if "panelId" in target:
                target["panelId"] = numbers[target["panelId"]]
    return document


def find_numbers(documents: Mapping[str, dict[str, Any]]) -> dict[str, int]:
    """Return the number of each panel by `BOARD: TITLE`."""
    return {f"{name}: {panel['title']}": panel["id"] for name, d in documents.items() for panel in list_panels(d)}


def write_numbers(text: str, numbers: Mapping[str, int]) -> str:
    """Return a text with the numbers of panels in place of their titles; raises KeyError where one is not there."""
    return re.sub(r"<((?:migration|workers): [^>]+)>", lambda found: str(numbers[found[1]]), text)


def _show_links(thing: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a dashboard; Grafana 12 would hide links that the SDK places in a menu."""
    thing.pop("placement", None) if "asDropdown" in thing else None
    return thing


def _dump(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def list_panels(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield rows and panels, also those within closed rows."""
    for panel in document["panels"]:
        yield panel
        yield from panel.get("panels", [])


def main(folder: Path = FOLDER) -> None:
    """Write both dashboards."""
    for name, text in render_all().items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
