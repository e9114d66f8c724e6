"""The files of alerts: one source, a section of the runbook and a test of its own each."""

import re

import pytest
import yaml

from alert_rules import ALERTS
from support.docs.doc_pages import ROOT, read_anchors
from support.screens.grafana import FOLDER
from write_alerts import GRAFANA, PROMETHEUS, render_grafana, render_prometheus

pytestmark = pytest.mark.texts

RUNBOOK = ROOT / "docs" / "runbook.md"
IN_GRAFANA = {alert.query: alert for alert in ALERTS if alert.query}


def test_the_rules_are_what_the_source_says() -> None:
    assert PROMETHEUS.read_text(encoding="utf-8") == render_prometheus()
    assert GRAFANA.read_text(encoding="utf-8") == render_grafana()


def test_every_alert_leads_to_its_section_of_the_runbook() -> None:
    anchors = read_anchors(RUNBOOK)
    rules = yaml.safe_load(PROMETHEUS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    rules += yaml.safe_load(GRAFANA.read_text(encoding="utf-8"))["groups"][0]["rules"]
    for rule in rules:
        path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert path.endswith("docs/runbook.md")
        assert anchor in anchors
        assert anchor == (rule.get("alert") or rule["title"]).lower()
    text = RUNBOOK.read_text(encoding="utf-8")
    assert re.findall(r"^## (Rowferry\w+)", text, re.MULTILINE) == [alert.name for alert in ALERTS]
    assert re.findall(r"^\| \[(Rowferry\w+)\]", text, re.MULTILINE) == [alert.name for alert in ALERTS]


def test_the_rules_of_grafana_are_whole() -> None:
    document = yaml.safe_load(GRAFANA.read_text(encoding="utf-8"))
    uids = [rule["uid"] for group in document["groups"] for rule in group["rules"]]
    assert len(set(uids)) == len(uids) == len(IN_GRAFANA) > 6
    sources = (FOLDER / "grafana" / "provisioning" / "datasources" / "rowferry.yaml").read_text(encoding="utf-8")
    boards = [path.read_text(encoding="utf-8") for path in (FOLDER / "grafana" / "dashboards").glob("*.json")]
    for rule in document["groups"][0]["rules"]:
        ask_, judge = rule["data"]
        assert f"uid: {ask_['datasourceUid']}" in sources
        assert (judge["datasourceUid"], judge["model"]["expression"]) == ("__expr__", ask_["refId"])
        assert rule["condition"] == judge["refId"]
        assert "$" not in ask_["model"]["rawSql"], "Grafana would take it for a variable of its environment"
        assert len(rule["uid"]) <= 40
        assert any(f'"uid": "{rule["dashboardUid"]}"' in board for board in boards)


def test_compose_evaluates_each_alert_once() -> None:
    """By Prometheus: Grafana reads rules from provisioning/alerting alone, and finds none there."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    mounts = [mount.split(":")[:2] for mount in services["grafana"]["volumes"] if mount.startswith("./")]
    provisioned = [
        str(path.relative_to(ROOT / source))
        for source, target in mounts
        if target.startswith("/etc/grafana")
        for path in (ROOT / source).rglob("*.yaml")
    ]
    assert "datasources/rowferry.yaml" in provisioned
    assert [path for path in provisioned if "groups:" in (FOLDER / "grafana" / "provisioning" / path).read_text()] == []
    assert not any(GRAFANA.is_relative_to((ROOT / source).resolve()) for source, _ in mounts)
    assert "./dashboards/prometheus:/etc/prometheus:ro" in services["prometheus"]["volumes"]
    config = yaml.safe_load((FOLDER / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert any(PROMETHEUS in (FOLDER / "prometheus").glob(pattern) for pattern in config["rule_files"])
