"""The files of alerts: a section of the runbook and a test of its own each."""

import re

import pytest
import yaml

from support.docs.doc_pages import ROOT, read_anchors
from support.screens.grafana import FOLDER, GRAFANA_ALERT, PROMETHEUS, RULES, URGENT_RULE

pytestmark = pytest.mark.texts

RUNBOOK = ROOT / "docs" / "runbook.md"


def test_every_alert_leads_to_its_section_of_the_runbook() -> None:
    anchors = read_anchors(RUNBOOK)
    for rule in [*RULES, URGENT_RULE]:
        path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert path.endswith("docs/runbook.md")
        assert anchor in anchors
        assert anchor == rule.get("alert", "the-seven-states").lower()
    text = RUNBOOK.read_text(encoding="utf-8")
    assert re.findall(r"^## (Rowferry\w+)", text, re.MULTILINE) == [rule["alert"] for rule in RULES]
    assert re.findall(r"^\| \[(Rowferry\w+)\]", text, re.MULTILINE) == [rule["alert"] for rule in RULES]


def test_the_rule_of_grafana_is_whole() -> None:
    rule = URGENT_RULE
    sources = (FOLDER / "grafana" / "provisioning" / "datasources" / "rowferry.yaml").read_text(encoding="utf-8")
    ask, judge = rule["data"]
    assert f"uid: {ask['datasourceUid']}" in sources
    assert (judge["datasourceUid"], judge["model"]["expression"]) == ("__expr__", ask["refId"])
    assert rule["condition"] == judge["refId"]
    assert "$" not in ask["model"]["rawSql"], "Grafana would take it for a variable of its environment"
    assert len(rule["uid"]) <= 40


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
    assert not any(GRAFANA_ALERT.is_relative_to((ROOT / source).resolve()) for source, _ in mounts)
    assert "./dashboards/prometheus:/etc/prometheus:ro" in services["prometheus"]["volumes"]
    config = yaml.safe_load((FOLDER / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert any(PROMETHEUS in (FOLDER / "prometheus").glob(pattern) for pattern in config["rule_files"])
