"""Renders the alerts as rules of Prometheus."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from alert_rules import ALERTS, Alert

HERE = Path(__file__).parent
PROMETHEUS = HERE / "prometheus" / "rules" / "alerts.yml"
RUNBOOK = "https://github.com/rowferry/rowferry/blob/main/docs/runbook.md"
WRITTEN = "# Written by dashboards/generate.py from dashboards/alert_rules.py. docs/runbook.md says what to do.\n"
BOARDS = HERE / "grafana" / "dashboards"
CHOOSES = {"migration": ("migration", "queue"), "workers": ("host",)}
"""Labels of an alert that are chosen on the dashboard, too."""


def render_prometheus() -> str:
    """Return the rules file of Prometheus."""
    rules = [
        {
            "alert": alert.name,
            "expr": re.sub(r" (and|or|unless) ", r"\n\1 ", alert.expr),
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.summary.replace("VALUE", "$value"),
                "runbook_url": f"{RUNBOOK}#{alert.name.lower()}",
                "dashboard_url": find_url(alert),
            },
        }
        for alert in ALERTS
    ]
    return WRITTEN + _dump({"groups": [{"name": "rowferry", "rules": rules}]})


def write_alerts() -> None:
    """Write the rules file."""
    PROMETHEUS.write_text(render_prometheus(), encoding="utf-8")


def find_panel(alert: Alert) -> tuple[str, int]:
    """Return the UID of the dashboard and the number of the panel that show an alert, by the written files."""
    name, _, title = alert.panel.partition(": ")
    board = json.loads((BOARDS / f"{name}.json").read_text(encoding="utf-8"))
    panels = [each for panel in board["panels"] for each in (panel, *panel.get("panels", []))]
    (number,) = [panel["id"] for panel in panels if panel["title"] == title]
    return board["uid"], number


def find_url(alert: Alert) -> str:
    """Return where Grafana shows an alert: the panel in full, of the alert's migration or host."""
    uid, number = find_panel(alert)
    labels = [label for label in CHOOSES[alert.panel.partition(":")[0]] if f"$labels.{label} " in alert.summary]
    chosen = "".join(f"&var-{label}={{{{ $labels.{label} | urlquery }}}}" for label in labels)
    return f"/d/{uid}?viewPanel={number}{chosen}"


class _Dumper(yaml.SafeDumper):
    """Writes expressions as blocks."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _write_text)


def _dump(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
