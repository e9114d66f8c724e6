"""What Grafana does with the dashboards' files: it reads panels and variables; dashboards/drawing fills macros in."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from support.checkout import ROOT

FOLDER = ROOT / "dashboards"
PROMETHEUS = FOLDER / "prometheus" / "rules" / "alerts.yml"
RULES: list[dict[str, Any]] = yaml.safe_load(PROMETHEUS.read_text(encoding="utf-8"))["groups"][0]["rules"]
GRAFANA_ALERT = FOLDER / "grafana" / "alerting" / "rowferry.yaml"
(URGENT_RULE,) = yaml.safe_load(GRAFANA_ALERT.read_text(encoding="utf-8"))["groups"][0]["rules"]
URGENT: str = URGENT_RULE["data"][0]["model"]["rawSql"]
"""The query of Grafana's own alert."""
BOARDS = ("migration", "workers")


@dataclass(frozen=True)
class Target:
    """One query of one panel."""

    board: str
    panel: str
    query: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.board}: {self.panel} {self.query['refId']}"

    @property
    def is_sql(self) -> bool:
        return "rawSql" in self.query

    @property
    def is_promql(self) -> bool:
        return "expr" in self.query


def read_board(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / "grafana" / "dashboards" / f"{name}.json").read_text(encoding="utf-8"))


def list_panels(name: str) -> list[dict[str, Any]]:
    """Return the panels of a dashboard, also those within closed rows; rows left out."""
    return [panel for panel in list_all(name) if panel["type"] != "row"]


def list_all(name: str) -> list[dict[str, Any]]:
    """Return the rows and panels of a dashboard, also those within closed rows."""
    return [each for panel in read_board(name)["panels"] for each in (panel, *panel.get("panels", []))]


def list_annotations(name: str) -> list[dict[str, Any]]:
    """Return the annotations of a dashboard."""
    return read_board(name)["annotations"]["list"]


def list_targets() -> Iterator[Target]:
    for board in BOARDS:
        for panel in list_panels(board):
            for query in panel.get("targets", []):
                yield Target(board, panel["title"], query)


def list_variables(board: str) -> dict[str, str]:
    """Return the queries of the template variables; not those that are data sources."""
    variables = read_board(board)["templating"]["list"]
    return {variable["name"]: variable["query"] for variable in variables if variable["type"] == "query"}
