"""Renders the alerts: as rules of Prometheus, and as alert rules that Grafana provisions and evaluates by itself."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from alert_rules import ALERTS, Alert

HERE = Path(__file__).parent
PROMETHEUS = HERE / "prometheus" / "rules" / "alerts.yml"
GRAFANA = HERE / "grafana" / "alerting" / "rowferry.yaml"
"""Beside what compose mounts: where Prometheus evaluates the alerts, Grafana is not to send each a second time."""
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
            "annotations": {**_annotate(alert, "$value"), "dashboard_url": find_url(alert)},
        }
        for alert in ALERTS
    ]
    return WRITTEN + _dump({"groups": [{"name": "rowferry", "rules": rules}]})


def render_grafana() -> str:
    """Return what Grafana provisions: the alerts that PostgreSQL alone can tell."""
    rules = [_render_rule(alert, alert.query) for alert in ALERTS if alert.query]
    group = {"orgId": 1, "name": "rowferry", "folder": "rowferry", "interval": "1m", "rules": rules}
    return WRITTEN + _dump({"apiVersion": 1, "groups": [group]})


def write_alerts() -> None:
    """Write both."""
    PROMETHEUS.write_text(render_prometheus(), encoding="utf-8")
    GRAFANA.parent.mkdir(exist_ok=True)
    GRAFANA.write_text(render_grafana(), encoding="utf-8")


def read_query(name: str) -> str:
    """Return the SQL of an alert: no rows while all is well; else one a row, with `value` above 0 and its labels."""
    return (HERE / "alert_queries" / f"{name}.sql").read_text(encoding="utf-8")


def find_panel(alert: Alert) -> tuple[str, int]:
    """Return the UID of the dashboard and the number of the panel that show an alert, by the written files."""
    name, _, title = alert.panel.partition(": ")
    board = json.loads((BOARDS / f"{name}.json").read_text(encoding="utf-8"))
    panels = [each for panel in board["panels"] for each in (panel, *panel.get("panels", []))]
    (number,) = [panel["id"] for panel in panels if panel["title"] == title]
    return board["uid"], number


def find_url(alert: Alert) -> str:
    """Return where Grafana shows an alert of Prometheus: the panel in full, of the alert's migration or host."""
    uid, number = find_panel(alert)
    labels = [label for label in CHOOSES[alert.panel.partition(":")[0]] if f"$labels.{label} " in alert.summary]
    chosen = "".join(f"&var-{label}={{{{ $labels.{label} | urlquery }}}}" for label in labels)
    return f"/d/{uid}?viewPanel={number}{chosen}"


def _render_rule(alert: Alert, query: str) -> dict[str, Any]:
    ask = {"refId": "A", "editorMode": "code", "format": "table", "rawQuery": True, "rawSql": read_query(query)}
    above = {"evaluator": {"type": "gt", "params": [0]}}
    is_sick = {"refId": "B", "type": "threshold", "expression": "A", "conditions": [above]}
    board, panel = find_panel(alert)
    return {
        "uid": f"rowferry-{query.replace('_', '-')}",
        "title": alert.name,
        "condition": "B",
        "for": alert.lasts,
        "data": [_wrap(ask, "rowferry-postgres"), _wrap(is_sick, "__expr__")],
        "dashboardUid": board,
        "panelId": panel,
        "noDataState": "OK",
        "execErrState": "Error",
        "labels": {"severity": alert.severity},
        "annotations": {
            **_annotate(alert, "$values.A.Value"),
            "__dashboardUid__": board,  # as Grafana exports a rule; one without the other is refused
            "__panelId__": str(panel),
        },
    }


def _wrap(model: dict[str, Any], source: str) -> dict[str, Any]:
    return {
        "refId": model["refId"],
        "datasourceUid": source,
        "relativeTimeRange": {"from": 600, "to": 0},
        "model": model,
    }


def _annotate(alert: Alert, value: str) -> dict[str, str]:
    return {"summary": alert.summary.replace("VALUE", value), "runbook_url": f"{RUNBOOK}#{alert.name.lower()}"}


class _Dumper(yaml.SafeDumper):
    """Writes SQL as blocks."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _write_text)


def _dump(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
