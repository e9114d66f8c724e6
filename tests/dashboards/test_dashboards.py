"""The dashboards as files, and every one of their SQL queries on a real PostgreSQL, asked by Grafana's own role."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from alert_rules import ALERTS
from rowferry.batch import Outcome
from rowferry.db.connection import connect
from rowferry.db.grants import apply_grants, compose_grants
from support.docs.doc_pages import read_anchors
from support.entries.entry_table import EntryTable
from support.postgres.roles import log_in, new_role
from support.processes.cli import run_rowferry
from support.queue.queue_states import acting, missing
from support.screens.grafana import (
    BOARDS,
    FOLDER,
    Target,
    View,
    list_all,
    list_annotations,
    list_panels,
    list_targets,
    list_variables,
    read_board,
)
from support.screens.known_metrics import known_metrics
from write_alerts import GRAFANA, PROMETHEUS

CORE_PANELS = {"stat", "timeseries", "table", "bargauge"}
OTHERS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""Metrics that Prometheus and its client library name."""


def test_the_committed_dashboards_are_what_the_script_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "generate.py"), str(tmp_path)], check=True, timeout=200)
    for board in BOARDS:
        written = (tmp_path / f"{board}.json").read_text(encoding="utf-8")
        assert written == (FOLDER / "grafana" / "dashboards" / f"{board}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("board", BOARDS)
def test_panels_are_of_core_types_and_say_what_they_show(board: str) -> None:
    panels, numbers = list_panels(board), [panel["id"] for panel in list_all(board)]
    assert {panel["type"] for panel in panels} <= CORE_PANELS
    assert [panel["title"] for panel in panels if not panel["description"]] == []
    assert [panel["title"] for panel in panels if not panel["fieldConfig"]["defaults"]["unit"]] == []
    assert [panel["title"] for panel in panels if not panel["fieldConfig"]["defaults"]["noValue"]] == []
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert len(set(numbers)) == len(numbers)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


@pytest.mark.parametrize("board", BOARDS)
def test_a_number_is_as_large_as_its_panel(board: str) -> None:
    """With a wide layout, one font size must fit the longest value into a third of a cell; four rows show no curve."""
    numbers = [panel for panel in list_panels(board) if panel["type"] == "stat"]
    assert len(numbers) == 6
    assert {panel["options"]["wideLayout"] for panel in numbers} == {False}
    assert {(panel["gridPos"]["w"], panel["gridPos"]["h"]) for panel in numbers} == {(4, 5)}


def test_a_state_has_a_word_and_a_colour() -> None:
    from rowferry_exporter.metrics import STATES

    (state,) = [panel for panel in list_panels("migration") if panel["title"] == "State"]
    (mapping,) = state["fieldConfig"]["defaults"]["mappings"]
    assert set(mapping["options"]) == set(STATES)
    assert all(each["text"] and each["color"] for each in mapping["options"].values())
    assert state["options"]["colorMode"] == "background"


def test_an_outcome_has_the_same_colour_everywhere() -> None:
    found: dict[str, set[str]] = {}
    for panel in [panel for board in BOARDS for panel in list_panels(board)]:
        for override in panel["fieldConfig"]["overrides"]:
            name = override["matcher"]["options"].strip("/^").removesuffix("\\b")
            fixed = [each["value"]["fixedColor"] for each in override["properties"] if each["id"] == "color"]
            mapped = [
                each["value"] for each in override["properties"] if each["id"] == "mappings" and name == "outcome"
            ]
            found.setdefault(name, set()).update(fixed)
            for word, look in [item for (mapping,) in mapped for item in mapping["options"].items()]:
                found.setdefault(word, set()).add(look["color"])
    outcomes = {str(outcome): found[str(outcome)] for outcome in Outcome}
    assert {name: len(colours) for name, colours in outcomes.items()} == dict.fromkeys(map(str, Outcome), 1)
    assert len(set().union(*outcomes.values())) == len(Outcome)


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


@pytest.mark.parametrize("board", BOARDS)
def test_a_panel_that_shows_the_answer_of_another_names_one_that_asks(board: str) -> None:
    """Those within closed rows are asked only once they are opened, so no other can rely on them."""
    asking = {
        panel["id"] for panel in read_board(board)["panels"] for t in panel.get("targets", []) if "panelId" not in t
    }
    borrowed = {target["panelId"] for panel in list_panels(board) for target in panel["targets"] if "panelId" in target}
    assert borrowed <= asking


def test_the_first_screen_asks_postgresql_four_times() -> None:
    """What is asked at each refresh costs the application's database; the rest waits in closed rows."""
    shown = [panel for panel in read_board("migration")["panels"] if panel["type"] != "row"]
    asked = [panel["title"] for panel in shown for target in panel["targets"] if "rawSql" in target]
    assert asked == ["All migrations", "State", "Entries a second", "Errors by reason"]


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


def test_every_number_leads_to_the_panel_that_explains_it() -> None:
    titles = {board: {panel["id"]: panel["title"] for panel in list_panels(board)} for board in BOARDS}
    for board in BOARDS:
        for panel in [panel for panel in list_panels(board) if panel["type"] == "stat"]:
            (one,) = panel["fieldConfig"]["defaults"]["links"]
            number = re.search(r"viewPanel=(\d+)", one["url"])
            assert one["title"] == (titles[board][int(number[1])] if number else "Runbook: what to do"), panel["title"]


def test_links_are_seen_above_the_panels() -> None:
    """Grafana 12 hides those with `placement` in a menu."""
    links = [link for board in BOARDS for link in read_board(board)["links"]]
    assert len(links) == 4
    assert not any("placement" in link for link in links)


def test_an_alert_leads_to_the_panel_that_shows_it() -> None:
    rules = yaml.safe_load(PROMETHEUS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    managed = {
        rule["title"]: rule for rule in yaml.safe_load(GRAFANA.read_text(encoding="utf-8"))["groups"][0]["rules"]
    }
    alerts = {alert.name: alert.panel for alert in ALERTS}
    titles = {f"{b}: {panel['title']}": (read_board(b)["uid"], panel["id"]) for b in BOARDS for panel in list_panels(b)}
    assert len(rules) == len(alerts)
    for rule in rules:
        uid, number = titles[alerts[rule["alert"]]]
        url = rule["annotations"]["dashboard_url"]
        check_link(url, "migration")
        assert url.startswith(f"/d/{uid}?viewPanel={number}")
        if rule["alert"] in managed:
            own = managed[rule["alert"]]
            assert (own["dashboardUid"], own["panelId"]) == (uid, number)
            told = own["annotations"]
            assert (told["__dashboardUid__"], told["__panelId__"]) == (uid, str(number))


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
        "rowferry_host_claimed_batches",
        "rowferry_queue_estimated_end_timestamp_seconds",
    } | {  # the dashboard Migration reads these from rowferry.migration_state, so that it works without Prometheus
        "rowferry_migration_estimated_end_timestamp_seconds",
        "rowferry_migration_seconds_left",
    }


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
    with new_role(table.dsn) as role:
        with connect("init", autocommit=True) as connection:
            apply_grants(connection, compose_grants(role, ["grafana"], None))
        with psycopg.connect(log_in(table, role), autocommit=True) as connection:
            yield connection


def now_shown(*queues: str) -> View:
    now = datetime.now(UTC)
    chosen = {"migration": ["avatars"], "queue": queues or ["migrate"]}
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


def test_no_sql_panel_is_in_error_while_nothing_can_be_chosen(
    table: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    """Before the first `rowferry enqueue` there is no migration and no queue: Grafana writes an empty list."""
    now = datetime.now(UTC)
    view = View(now - timedelta(hours=1), now, {"migration": [], "queue": []})
    marks = [marks_of(name) for name in MARKS]
    queries = [*(target.query["rawSql"] for target in SQL_TARGETS), *list_variables("migration").values(), *marks]
    assert [grafana.execute(view.expand_sql(query).encode()).fetchall() for query in queries] == [[]] * len(queries)


MARKS = ("Pauses", "Requeues and lost workers")


def marks_of(name: str) -> str:
    """Return the query of marks on the dashboard Migration."""
    (query,) = [a["target"]["rawSql"] for a in list_annotations("migration") if a["name"] == name]
    return query


def read_marks(name: str, connection: "psycopg.Connection[Any]") -> list[tuple[Any, ...]]:
    return connection.execute(now_shown().expand_sql(marks_of(name)).encode()).fetchall()


def test_a_pause_is_marked_from_its_beginning_to_its_end(
    busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    busy_queue.execute("select rowferry.pause('avatars')")
    busy_queue.execute("update rowferry.event set at = at - interval '2 hours'")
    ((began, until, text, kind),) = read_marks("Pauses", grafana)
    assert (bool(text), kind) == (True, "paused")
    assert until - began == pytest.approx(timedelta(hours=2), abs=timedelta(seconds=60)), "it lasts"
    busy_queue.execute("select rowferry.resume('avatars')")
    ((_, resumed, *_),) = read_marks("Pauses", grafana)
    busy_queue.execute("select rowferry.pause('avatars')")
    ((_, until, *_), (second, *_)) = read_marks("Pauses", grafana)
    assert until == resumed < second
    assert read_marks("Requeues and lost workers", grafana) == []


def test_a_requeue_and_a_lost_worker_are_marked(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    busy_queue.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
    busy_queue.execute("update rowferry.worker set last_seen_at = now() - interval '1 min' where host = 'host-a'")
    assert sorted(kind for *_, kind in read_marks("Requeues and lost workers", grafana)) == ["requeued", "worker_lost"]


def test_a_stall_is_zeros_and_the_entries_left_stay(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    busy_queue.execute(
        "update rowferry.batch_queue set finished_at = finished_at - interval '10 minutes' where status <> 'INIT'"
    )
    rows = read_pace(grafana, now_shown())
    worked = [row["migrated"] + row["missing"] for row in rows if row["migrated"] is not None]
    left = [row["left"] for row in rows if row["left"] is not None]
    busy = next(place for place, count in enumerate(worked) if count > 0)
    assert len(worked) > 300
    assert set(worked[:busy]) == {0}
    assert set(worked[-50:]) == {0}
    assert (left[0], left[-1]) == (50, 30)
    assert all(earlier >= later for earlier, later in pairwise(left))


def test_a_day_shows_the_same_sums_as_an_hour(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    busy_queue.execute(
        "update rowferry.batch_queue set finished_at = finished_at - interval '10 minutes' where status <> 'INIT'"
    )
    chosen, now = now_shown().values, datetime.now(UTC)
    hour = read_pace(grafana, View(now - timedelta(hours=1), now, chosen))
    day = read_pace(grafana, View(now - timedelta(hours=24), now, chosen, 30))
    steps = [later["time"] - earlier["time"] for earlier, later in pairwise(day)]
    assert set(steps) == {60}, "by the minute, whatever the width of the panel"
    for name in ("migrated", "missing", "failed"):
        finished = [sum(row[name] or 0 for row in rows) * step for rows, step in ((hour, 10), (day, 60))]
        assert finished[0] == pytest.approx(float(finished[1]))
    assert {row["left"] for row in hour if row["left"] is not None} == {50, 30}
    assert {row["left"] for row in day if row["left"] is not None} == {50, 30}
    assert sum(row["migrated"] or 0 for row in day) > 0


def test_entries_left_are_projected_into_the_future(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    busy_queue.execute(
        "update rowferry.batch_queue set finished_at = finished_at - interval '1 minute' where status <> 'INIT'"
    )
    now = datetime.now(UTC)
    chosen = now_shown().values
    shown = View(now - timedelta(hours=1), now + timedelta(minutes=1), chosen)
    present = [row["at this pace"] for row in read_pace(grafana, shown)]
    assert next(value for value in present if value is not None) == 30
    assert set(present[:-9]) == {None}
    ahead = [row for row in read_pace(grafana, View(now, now + timedelta(hours=1), chosen)) if row["left"] is None]
    projected = [row["at this pace"] for row in ahead]
    assert projected[0] <= 30
    assert projected[-1] == 0
    assert all(earlier >= later for earlier, later in pairwise(projected))


def test_nothing_is_projected_while_it_is_paused_or_nobody_works(
    busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    now = datetime.now(UTC)
    ahead = View(now - timedelta(minutes=5), now + timedelta(hours=1), now_shown().values)
    assert {row["at this pace"] for row in read_pace(grafana, ahead)} > {None}
    until_now = View(now - timedelta(minutes=5), now, now_shown().values)
    assert {row["at this pace"] for row in read_pace(grafana, until_now)} == {None}, "a dot is no projection"
    busy_queue.execute("select rowferry.pause('avatars')")
    assert {row["at this pace"] for row in read_pace(grafana, ahead)} == {None}
    busy_queue.execute("select rowferry.resume('avatars')")
    busy_queue.execute("update rowferry.worker set last_seen_at = now() - interval '1 min'")
    assert {row["at this pace"] for row in read_pace(grafana, ahead)} == {None}


def test_one_screen_has_one_truth(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    """The row of all migrations, the six numbers and the tables say the same share, entries left and speed."""
    busy_queue.execute("update rowferry.batch_queue set finished_at = now() - interval '2 s' where status <> 'INIT'")
    (row,) = read_rows("All migrations", grafana)
    (now,) = read_rows("State", grafana)
    (table,) = read_rows("Progress by table", grafana)
    pace = read_rows("Entries a second", grafana)
    left, speed = ([step[name] for step in pace if step[name] is not None][-1] for name in ("left", "speed"))
    # 50 entries: 18 are migrated, 2 are missing, 30 wait
    assert (float(row["done"]), float(now["done"]), float(table["done"])) == (36, 36, 36)
    assert (row["entries left"], left, table["waiting"]) == (30, 30, 30)
    assert speed == pytest.approx(row["entries/s"], rel=0.5)
    assert speed > 1


def test_what_is_done_has_neither_a_speed_nor_all_entries_while_some_need_an_operator(
    table: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    table.add_legacy(range(1, 51))
    table.enqueue(batch_size=25)
    with acting(table, "host-a:1:aa") as (worker,):
        worker.finish(worker.claim())
        worker.finish(worker.claim(), failures=[missing(41), missing(42)])
        (row,) = read_rows("All migrations", grafana)
        (now,) = read_rows("State", grafana)
        speeds = [step["speed"] for step in read_rows("Entries a second", grafana) if step["speed"] is not None]
    assert (row["state"], float(row["done"]), float(now["done"])) == ("need_somebody", 96, 96)
    assert (row["entries/s"], speeds[-1]) == (0, 0)


def read_rows(panel: str, connection: "psycopg.Connection[Any]") -> list[dict[str, Any]]:
    (target,) = [target for target in SQL_TARGETS if target.panel == panel]
    cursor = connection.execute(now_shown().expand_sql(target.query["rawSql"]).encode())
    names = [column.name for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def read_pace(connection: "psycopg.Connection[Any]", view: View) -> list[dict[str, Any]]:
    (target,) = [target for target in SQL_TARGETS if target.panel == "Entries a second"]
    cursor = connection.execute(view.expand_sql(target.query["rawSql"]).encode())
    names = [column.name for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_every_sql_variable_returns_values(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    variables = list_variables("migration")
    assert grafana.execute(variables["migration"].encode()).fetchall() == [("avatars",)]
    queues = now_shown().expand_sql(variables["queue"]).encode()
    assert grafana.execute(queues).fetchall() == [("migrate",)]


def test_curves_have_a_time_and_numbers(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    curves = [target for target in SQL_TARGETS if target.query["format"] == "time_series"]
    assert curves
    for target in curves:
        cursor = grafana.execute(now_shown().expand_sql(target.query["rawSql"]).encode())
        names, row = [column.name for column in cursor.description or []], cursor.fetchone()
        assert row is not None
        assert names[0] == "time"
        numbers = [value for name, value in zip(names, row, strict=True) if name != "metric"]
        assert all(float(value) >= 0 for value in numbers if value is not None)


def test_the_command_beside_an_error_requeues_it(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    (target,) = [target for target in SQL_TARGETS if target.panel == "Errors by reason"]
    ((queue, outcome, reason, entries, batches, *_, command),) = read(target, grafana)
    assert (queue, outcome, reason, entries, batches) == ("migrate", "missing", "NoSuchKey", 2, 1)
    type_in_shell(command)
    assert read(target, grafana) == []
    assert busy_queue.statuses() == {"INIT", "DONE"}


@pytest.mark.parametrize("reason", ["it's 100 %", r"a_b\c 'd' %", "x" * 300])
def test_the_command_is_right_for_any_reason(
    reason: str, busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    busy_queue.execute("update rowferry.entry_failure set reason = %s", (reason,))
    (target,) = [target for target in SQL_TARGETS if target.panel == "Errors by reason"]
    ((*_, command),) = read(target, grafana)
    type_in_shell(command)
    assert read(target, grafana) == []


def test_a_batch_that_was_parked_by_hand_has_a_command_too(
    busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    busy_queue.execute(
        "update rowferry.batch_queue set status = 'ERROR' where id = "
        "(select id from rowferry.batch_queue where status = 'INIT' order by id limit 1 for update skip locked)"
    )
    (target,) = [target for target in SQL_TARGETS if target.panel == "Errors by reason"]
    commands = {row[1]: row[-1] for row in read(target, grafana)}
    assert set(commands) == {"missing", "parked"}
    type_in_shell(commands["parked"])
    assert [row[1] for row in read(target, grafana)] == ["missing"]


def type_in_shell(command: str) -> None:
    """Run what an operator is told to type."""
    program, *arguments = shlex.split(command)
    assert program == "rowferry"
    done = run_rowferry(arguments, os.environ, FOLDER)
    assert done.returncode == 0, done.stderr


def read(target: Target, connection: "psycopg.Connection[Any]") -> list[tuple[Any, ...]]:
    return connection.execute(now_shown().expand_sql(target.query["rawSql"]).encode()).fetchall()


def test_the_docs_speak_of_every_panel() -> None:
    page = (FOLDER.parent / "docs" / "dashboards.md").read_text(encoding="utf-8")
    for board, heading in (("migration", "## Migration"), ("workers", "## Workers")):
        section = page.split(f"{heading}\n")[1].split("\n## ")[0]
        told = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
        assert told[2:] == [panel["title"] for panel in list_panels(board)]
