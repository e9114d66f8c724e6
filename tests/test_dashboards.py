"""The dashboards as files, and every one of their SQL queries on a real PostgreSQL, asked by Grafana's own role."""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import yaml
from psycopg import sql
from psycopg.conninfo import make_conninfo

from entry_table import EntryTable
from grafana import BOARDS, FOLDER, Target, View, list_panels, list_targets, list_variables, read_board
from queue_states import acting, missing
from rowferry.db.connection import connect
from rowferry.db.grants import apply_grants, compose_grants
from rowferry_exporter.metrics import describe
from rowferry_exporter.reader import Reading

CORE_PANELS = {"stat", "timeseries", "table", "bargauge", "piechart", "text", "gauge"}
OTHERS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""Metrics that Prometheus and its client library name."""


def test_the_committed_dashboards_are_what_the_script_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "generate.py"), str(tmp_path)], check=True, timeout=200)
    for board in BOARDS:
        written = (tmp_path / f"{board}.json").read_text(encoding="utf-8")
        assert written == (FOLDER / "grafana" / "dashboards" / f"{board}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("board", BOARDS)
def test_panels_are_of_core_types_and_say_what_they_show(board: str) -> None:
    panels = list_panels(board)
    assert {panel["type"] for panel in panels} <= CORE_PANELS
    assert all(panel.get("description") or panel["type"] == "text" for panel in panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert len({panel["id"] for panel in read_board(board)["panels"]}) == len(read_board(board)["panels"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def test_the_data_sources_are_those_that_are_provisioned() -> None:
    provisioned = yaml.safe_load((FOLDER / "grafana/provisioning/datasources/rowferry.yaml").read_text())
    known = {(source["uid"], source["type"]) for source in provisioned["datasources"]}
    used = {(t.query["datasource"]["uid"], t.query["datasource"]["type"]) for t in list_targets()}
    for board in BOARDS:
        variables = read_board(board)["templating"]["list"]
        used |= {(variable["datasource"]["uid"], variable["datasource"]["type"]) for variable in variables}
    assert used == known


def test_every_metric_that_is_asked_for_exists() -> None:
    asked = {name for query in promql_everywhere() for name in metrics_in(query)}
    assert len(asked) > 20
    assert asked <= known_metrics() | OTHERS


def test_every_metric_of_a_worker_is_shown_or_alerts() -> None:
    asked = {name for query in promql_everywhere() for name in metrics_in(query)}
    unseen = {name for name in known_metrics() if not {name, f"{name.rpartition('_')[0]}_bucket"} & asked}
    assert unseen == {
        "rowferry_exporter_queues_left_out",
        "rowferry_exporter_read_seconds",
        "rowferry_last_heartbeat_timestamp_seconds",
        "rowferry_migration_done",
        "rowferry_queue_batches",
        "rowferry_host_claimed_batches",
        "rowferry_queue_estimated_end_timestamp_seconds",
    } | {
        "rowferry_migration_seconds_left",
        "rowferry_step_seconds_total",
        "rowferry_table_dead_rows",
    }


def promql_everywhere() -> Iterator[str]:
    """Yield every query of panels, variables and rules."""
    yield from (target.query["expr"] for target in list_targets() if not target.is_sql)
    yield from list_variables("workers").values()
    for path in (FOLDER / "prometheus" / "rules").glob("*.yml"):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from (rule["expr"] for rule in group["rules"])


def metrics_in(query: str) -> set[str]:
    """Return the names of metrics in a query of Prometheus; not those that a recording rule makes (with a colon)."""
    bare = re.sub(r'"[^"]*"', "", query)
    return set(re.findall(r"(?<![\w:])(?:rowferry|process)_\w+(?!\w*:)|\bup\b", bare))


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
    names = {next(iter(m.describe())).name + suffix for m in own for suffix in suffixes[type(m)]}
    return names | {family.name for family in describe(Reading([], [], [], [], [], 0.0, 0.0))}


@pytest.fixture
def busy_queue(table: EntryTable) -> Iterator[EntryTable]:
    """A queue in which batches are waiting, claimed, done and failed."""
    table.add_legacy(range(1, 51))
    table.enqueue(batch_size=10)
    with acting(table, "host-a:1:aa", "host-b:2:bb") as (one, other):
        one.finish(one.claim())
        other.finish(other.claim(), failures=[missing(11), missing(12)])
        held = one.claim()
        yield table
        held.connection.close()


@pytest.fixture
def grafana(table: EntryTable) -> Iterator["psycopg.Connection[Any]"]:
    """A connection of a role that was made by `rowferry init --grants ROLE --for grafana`."""
    name = f"grafana_{uuid4().hex}"
    role = sql.Identifier(name)
    with psycopg.connect(table.dsn, autocommit=True) as owner:
        owner.execute(sql.SQL("create role {} login password 'x'").format(role))
        try:
            with connect("init", autocommit=True) as connection:
                apply_grants(connection, compose_grants(name, ["grafana"], None))
            dsn = make_conninfo(table.dsn, user=name, password="x")
            with psycopg.connect(dsn, autocommit=True) as connection:
                yield connection
        finally:
            owner.execute(sql.SQL("drop owned by {0}; drop role {0}").format(role))


def now_shown(*queues: str) -> View:
    now = datetime.now(UTC)
    chosen = {"migration": ["avatars"], "queue": queues or ["migrate"], "host": ["host-a", "host-b"]}
    return View(now - timedelta(hours=1), now + timedelta(minutes=1), chosen)


SQL_TARGETS = [target for target in list_targets() if target.is_sql]


def test_every_sql_panel_returns_data(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    empty = [
        str(target)
        for target in SQL_TARGETS
        if not grafana.execute(now_shown().expand_sql(target.query["rawSql"]).encode()).fetchall()
    ]
    assert empty == []
    assert len(SQL_TARGETS) > 10


def test_every_sql_variable_returns_values(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    variables = list_variables("migration")
    assert grafana.execute(variables["migration"].encode()).fetchall() == [("avatars",)]
    queues = now_shown().expand_sql(variables["queue"]).encode()
    assert grafana.execute(queues).fetchall() == [("migrate",)]
    assert grafana.execute(variables["host"].encode()).fetchall() == [("host-a",), ("host-b",)]


def test_curves_have_a_time_and_numbers(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    curves = [target for target in SQL_TARGETS if target.query["format"] == "time_series"]
    assert curves
    for target in curves:
        cursor = grafana.execute(now_shown().expand_sql(target.query["rawSql"]).encode())
        names, row = [column.name for column in cursor.description or []], cursor.fetchone()
        assert row is not None
        assert names[0] == "time"
        assert all(float(value) >= 0 for name, value in zip(names, row, strict=True) if name != "metric")


def test_the_statement_beside_an_error_requeues_it(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    (target,) = [target for target in SQL_TARGETS if target.panel == "Errors by reason"]
    ((queue, outcome, reason, entries, batches, *_, statement),) = read(target, grafana)
    assert (queue, outcome, reason, entries, batches) == ("migrate", "missing", "NoSuchKey", 2, 1)
    busy_queue.execute(statement)
    assert read(target, grafana) == []
    assert busy_queue.statuses() == {"INIT", "DONE"}


def read(target: Target, connection: "psycopg.Connection[Any]") -> list[tuple[Any, ...]]:
    return connection.execute(now_shown().expand_sql(target.query["rawSql"]).encode()).fetchall()


def test_the_words_about_requeueing_can_be_run(busy_queue: EntryTable) -> None:
    (panel,) = [panel for panel in list_panels("migration") if panel["type"] == "text"]
    (statement,) = re.findall(r"```sql\n(.*?)```", panel["options"]["content"], re.DOTALL)
    busy_queue.execute(statement.replace("${migration}", "avatars"))
    assert busy_queue.statuses() == {"INIT", "DONE"}


def test_the_docs_speak_of_every_panel() -> None:
    page = (FOLDER.parent / "docs" / "dashboards.md").read_text(encoding="utf-8")
    for board, heading in (("migration", "## Migration"), ("workers", "## Workers")):
        section = page.split(f"{heading}\n")[1].split("\n## ")[0]
        told = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
        assert told[2:] == [panel["title"] for panel in list_panels(board)]
