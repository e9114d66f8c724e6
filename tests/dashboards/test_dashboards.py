"""The dashboards as files: their panels, links, colours, sources and metrics."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rowferry_exporter.metrics import describe
from support.docs.doc_pages import read_anchors
from support.screens.grafana import (
    BOARDS,
    FOLDER,
    RULES,
    list_all,
    list_annotations,
    list_panels,
    list_targets,
    list_variables,
    read_board,
)


def known_metrics() -> set[str]:
    """Return the names under which the metrics of workers and exporter are scraped."""
    from prometheus_client import Counter, Gauge, Histogram

    from rowferry_worker.monitoring import metrics

    suffixes: dict[type, tuple[str, ...]] = {
        Counter: ("_total",),
        Gauge: ("",),
        Histogram: ("_bucket", "_count", "_sum"),
    }
    own = [metric for metric in vars(metrics).values() if isinstance(metric, (Counter, Gauge, Histogram))]
    names = {
        next(iter(m.describe())).name + suffix
        for m in own
        for kind in suffixes
        if isinstance(m, kind)
        for suffix in suffixes[kind]
    }
    return names | {family.name for family in describe({})}


pytestmark = pytest.mark.texts

OTHERS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""Metrics that Prometheus and its client library name."""

SHOWN = {
    "migration: What bounds it: a batch's time by step": "NoProgress",
    "migration: All migrations": "PausedByWorker Blind ExporterGone Waiting PausedLong",
    "migration: Hosts": "NoWorkers",
    "migration: Queues of the migration": "QueueStarved",
    "migration: Errors by reason": "ErrorShare NeedsOperator",
    "migration: Oldest transaction": "OldTransaction",
    "migration: Entries a second": "Slow",
    "workers: Hosts": "WorkerLost HostUnseen HostIdle",
    "workers: S3 faults a second by side and result": "Throttled",
}
"""The alerts by the panel that shows them."""


def test_the_committed_dashboards_are_what_the_script_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "generate.py"), str(tmp_path)], check=True, timeout=200)
    for board in BOARDS:
        written = (tmp_path / f"{board}.json").read_text(encoding="utf-8")
        assert written == (FOLDER / "grafana" / "dashboards" / f"{board}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("board", BOARDS)
def test_panels_are_of_core_types_and_say_what_they_show(board: str) -> None:
    """A number is as large as its panel: a wide layout fits the longest value into a third; four rows show no curve."""
    panels, ids = list_panels(board), [panel["id"] for panel in list_all(board)]
    for panel in panels:
        own = panel["fieldConfig"]["defaults"]
        assert panel["type"] in {"stat", "timeseries", "table", "bargauge"}, panel["title"]
        assert panel["description"] and own["unit"] and own["noValue"], panel["title"]  # noqa: PT018
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert len(set(ids)) == len(ids)
    numbers = [panel for panel in panels if panel["type"] == "stat"]
    assert len(numbers) == 6
    assert {panel["options"]["wideLayout"] for panel in numbers} == {False}
    assert {(panel["gridPos"]["w"], panel["gridPos"]["h"]) for panel in numbers} == {(4, 5)}


def test_a_state_has_a_word_and_a_colour() -> None:
    from rowferry_exporter.metrics import STATES

    (state,) = [panel for panel in list_panels("migration") if panel["title"] == "State"]
    mapping, *ages = state["fieldConfig"]["defaults"]["mappings"]
    assert set(mapping["options"]) == set(STATES)
    assert all(each["text"] and each["color"] for each in mapping["options"].values())
    colours = {age["options"]["pattern"].split()[0].strip("/^"): age["options"]["result"]["color"] for age in ages}
    assert colours == {state: each["color"] for state, each in mapping["options"].items()}
    assert state["options"]["colorMode"] == "background"


@pytest.mark.parametrize("board", BOARDS)
def test_the_data_sources_are_variables(board: str) -> None:
    """Grafana asks for them on import; provisioned, they are those of grafana/provisioning."""
    provisioned = yaml.safe_load((FOLDER / "grafana/provisioning/datasources/rowferry.yaml").read_text())
    known = {(source["uid"], source["type"]) for source in provisioned["datasources"]}
    variables = {v["name"]: v for v in read_board(board)["templating"]["list"] if v["type"] == "datasource"}
    assert {(v["current"]["value"], v["query"]) for v in variables.values()} <= known
    used = {find_source(each) for each in (*list_panels(board), *list_annotations(board))}
    used |= {find_source(target) for panel in list_panels(board) for target in panel["targets"]}
    used |= {find_source(v) for v in read_board(board)["templating"]["list"] if v["type"] == "query"}
    others = used - {(f"${{{name}}}", variable["query"]) for name, variable in variables.items()}
    assert others <= {("-- Dashboard --", "datasource")}
    assert {f"${{{name}}}" for name in variables} <= {uid for uid, _ in used}


def find_source(document: dict[str, Any]) -> tuple[str, str]:
    """Return UID and type of the data source that something names."""
    return document["datasource"]["uid"], document["datasource"]["type"]


def test_the_first_screen_asks_postgresql_five_times_and_others_borrow_from_it() -> None:
    """What is asked at each refresh costs the application's database; the rest waits in closed rows, which ask late."""
    for board in BOARDS:
        shown = [panel for panel in read_board(board)["panels"] if panel["type"] != "row"]
        asking = {panel["id"]: panel for panel in shown for t in panel["targets"] if "panelId" not in t}
        borrowed = {t["panelId"] for panel in list_panels(board) for t in panel["targets"] if "panelId" in t}
        assert borrowed <= set(asking)
        asked = [panel["title"] for panel in shown for target in panel["targets"] if "rawSql" in target]
        first = ["All migrations", "State", "Queues of the migration", "Errors by reason", "Entries a second"]
        assert asked == (first if board == "migration" else [])


@pytest.mark.parametrize("board", BOARDS)
def test_links_lead_to_panels_and_sections_that_are_there(board: str) -> None:
    found = re.findall(r'"url": "([^"]*)"', (FOLDER / "grafana" / "dashboards" / f"{board}.json").read_text())
    assert len(found) > 8
    for url in found:
        check_link(url, board)


def check_link(url: str, board: str) -> None:
    """Fail unless a link leads to a dashboard, panel, variable or section that is there; `board`: where it stands."""
    page, _, anchor = url.partition("/blob/main/docs/")[2].partition("#")
    if page:
        assert not anchor or anchor in read_anchors(FOLDER.parent / "docs" / page), url
        return
    inside = re.fullmatch(r"/d/rowferry-(\w+)\?(.*)", url)
    assert inside, url
    name, asked = inside.groups()
    there, here = ({variable["name"] for variable in read_board(each)["templating"]["list"]} for each in (name, board))
    assert name in BOARDS
    assert set(re.findall(r"\$\{(\w+):queryparam\}", asked)) <= there & here, url
    assert set(re.findall(r"var-(\w+)=", asked)) <= there, url
    numbers = [int(number) for number in re.findall(r"viewPanel=([^&]*)", asked)]
    assert set(numbers) <= {panel["id"] for panel in list_panels(name)}, url


def test_an_alert_leads_to_the_panel_that_shows_it() -> None:
    numbers = {
        f"{b}: {panel['title']}": f"/d/rowferry-{b}?viewPanel={panel['id']}" for b in BOARDS for panel in list_panels(b)
    }
    urls = {rule["alert"].removeprefix("Rowferry"): rule["annotations"]["dashboard_url"] for rule in RULES}
    for url in urls.values():
        check_link(url, "migration")
    assert {name: url.partition("&")[0] for name, url in urls.items()} == {
        name: numbers[title] for title, names in SHOWN.items() for name in names.split()
    }


def test_every_metric_that_is_asked_for_exists() -> None:
    asked = {name for query in promql_everywhere() for name in metrics_in(query)}
    assert len(asked) > 20
    assert asked <= known_metrics() | OTHERS


def promql_everywhere() -> Iterator[str]:
    """Yield every query of panels, variables and rules."""
    yield from (target.query["expr"] for target in list_targets() if target.is_promql)
    yield from list_variables("workers").values()
    yield from (a["expr"] for board in BOARDS for a in list_annotations(board) if "expr" in a)
    for path in (FOLDER / "prometheus" / "rules").glob("*.yml"):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from (rule["expr"] for rule in group["rules"])


def metrics_in(query: str) -> set[str]:
    """Return the names of metrics in a query of Prometheus; not those that a recording rule makes (with a colon)."""
    bare = re.sub(r'"[^"]*"', "", query)
    return set(re.findall(r"(?<![\w:])(?:rowferry|process)_\w+(?!\w*:)|\bup\b", bare))


def test_the_docs_speak_of_every_panel() -> None:
    page = (FOLDER.parent / "docs" / "dashboards.md").read_text(encoding="utf-8")
    for board, heading in (("migration", "## Migration"), ("workers", "## Workers")):
        section = page.split(f"{heading}\n")[1].split("\n## ")[0]
        told = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
        assert told[2:] == [panel["title"] for panel in list_panels(board)]
