"""What the pictures of the dashboards rest on: macros, variables, intervals, data frames. Drawing itself needs node."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drawing.answers import list_panels, write_words
from drawing.frames import fill_gaps, frame_of_rows, frames_of_curves, table_of_samples
from drawing.intervals import choose_interval, milliseconds, rate_interval
from drawing.macros import View, fill_of
from drawing.throttling_proxy import Throttle
from drawing.variables import Choice, find_by_regex, in_promql, in_sql, in_words, write_in
from support.screens.grafana import FOLDER

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
HOSTS = Choice(["a.b", "c"], is_list=True, shown="All")
VIEW = View(START, START + timedelta(minutes=5), {"host": HOSTS, "migration": Choice(["o'neil"])}, 2)
TEXT, INTEGER, FLOAT, STAMP = 25, 23, 701, 1184


@pytest.mark.parametrize(
    ("minutes", "points", "least", "expected"),
    [
        (60, 1000, None, 5_000),
        (60, 1000, "10s", 10_000),
        (5, 1000, None, 200),
        (24 * 60, 800, None, 120_000),
        (1, 10**9, None, 1),
    ],
)
def test_points_are_as_far_apart_as_in_grafana(minutes: int, points: int, least: str | None, expected: int) -> None:
    assert choose_interval(START, START + timedelta(minutes=minutes), points, least) == expected


def test_a_rate_spans_four_scrapes_at_least() -> None:
    assert rate_interval(1000, 15_000) == 60_000
    assert rate_interval(120_000, 15_000) == 135_000


@pytest.mark.parametrize(("text", "expected"), [("10s", 10_000), (">1m", 60_000), ("500ms", 500), ("24h", 86_400_000)])
def test_durations_are_read(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


def test_a_faulty_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="'soon'"):
        milliseconds("soon")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "where $__timeFilter(finished_at)",
            "where finished_at BETWEEN '2026-11-22T12:00:00Z' AND '2026-11-22T12:05:00Z'",
        ),
        ("$__timeFilter(coalesce(a, b))", "coalesce(a, b) BETWEEN '2026-11-22T12:00:00Z' AND '2026-11-22T12:05:00Z'"),
        ("$__timeFrom() $__timeTo()", "'2026-11-22T12:00:00Z' '2026-11-22T12:05:00Z'"),
        ("$__timeGroupAlias(at, $__interval, 0)", 'floor(extract(epoch from at)/10)*10 AS "time"'),
        ("$__timeGroup(at, '1m')", "floor(extract(epoch from at)/60)*60"),
        ("host in (${host:sqlstring})", "host in ('a.b','c')"),
        ("host in ($host)", "host in ('a.b','c')"),
        ("name = ${migration:sqlstring}", "name = 'o''neil'"),
        ("/ $__interval_ms", "/ 10000"),
        ("select '$1' || $unknown", "select '$1' || $unknown"),
    ],
)
def test_sql_is_written_as_grafana_writes_it(query: str, expected: str) -> None:
    assert VIEW.expand_sql(query, 10_000) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('rate(x{host=~"$host"}[$__rate_interval])', 'rate(x{host=~"(a\\\\.b|c)"}[12s])'),
        ('x{host=~"${host:pipe}"}', 'x{host=~"a.b|c"}'),
        ("increase(x[$__range])", "increase(x[300s])"),
        ('x{migration="$migration"}', 'x{migration="o\'neil"}'),
    ],
)
def test_promql_is_written_as_grafana_writes_it(query: str, expected: str) -> None:
    assert VIEW.expand_promql(query, 10_000) == expected


def test_no_value_of_a_list_leaves_empty_brackets() -> None:
    """What broke three panels before the first worker came, and must be seen."""
    nobody = {"host": Choice([], is_list=True)}
    assert write_in("host in (${host:sqlstring})", nobody, in_sql) == "host in ()"
    assert write_in('{host=~"$host"}', nobody, in_promql) == '{host=~"()"}'


def test_all_values_may_have_a_word_of_their_own() -> None:
    everybody = {"host": Choice(["a", "b"], is_list=True, all_value=".*", shown="All")}
    assert write_in('x{host=~"$host"} ${host:text}', everybody, in_promql) == 'x{host=~".*"} All'


def test_titles_and_texts_name_what_is_chosen() -> None:
    panel = {"title": "Of $host", "options": {"content": "for ${migration}"}, "targets": [{"expr": "$host"}]}
    written = write_words(panel, {"host": HOSTS, "migration": Choice(["avatars"])})
    assert written == {"title": "Of {a.b,c}", "options": {"content": "for avatars"}, "targets": [{"expr": "$host"}]}
    assert in_words(Choice(["one"])) == "one"


def test_a_variable_takes_each_value_that_its_regex_finds_once() -> None:
    texts = ['{queue="migrate"} 1', '{queue="verify"} 2', '{queue="migrate"} 3']
    assert find_by_regex(texts, '/queue="([^"]+)"/') == ["migrate", "verify"]
    assert find_by_regex(["b", "a", "b"], "") == ["b", "a"]


def test_rows_become_fields_of_their_types() -> None:
    columns = [("at", STAMP), ("entries", INTEGER), ("host", TEXT), ("ratio", FLOAT)]
    frame = frame_of_rows("A", columns, [(START, 3, "a", None), (None, 4, None, float("nan"))], "table")
    assert [(field["name"], field["type"], field["values"]) for field in frame["fields"]] == [
        ("at", "time", [START.timestamp() * 1000, None]),
        ("entries", "number", [3.0, 4.0]),
        ("host", "string", ["a", None]),
        ("ratio", "number", [None, None]),
    ]


def curves_of(frame: dict[str, Any]) -> list[tuple[str, Any, list[Any]]]:
    return [(field["name"], field.get("labels"), field["values"]) for field in frame["fields"]]


def test_the_times_of_an_annotation_may_be_seconds() -> None:
    columns = [("time", FLOAT), ("timeend", INTEGER), ("text", TEXT)]
    frame = frame_of_rows("A", columns, [(1.5, 3, "paused")], "annotation")
    assert [field["values"] for field in frame["fields"]] == [[1500.0], [3000.0], ["paused"]]


def test_long_rows_become_a_curve_for_each_text() -> None:
    rows = [(10, "a", 1, 2), (10, "b", 3, 4), (20, "a", 5, 6)]
    frame = frame_of_rows("A", [("time", FLOAT), ("queue", TEXT), ("x", INTEGER), ("y", INTEGER)], rows, "time_series")
    assert curves_of(frame) == [
        ("time", None, [10_000.0, 20_000.0]),
        ("x", {"queue": "a"}, [1.0, 5.0]),
        ("y", {"queue": "a"}, [2.0, 6.0]),
        ("x", {"queue": "b"}, [3.0, None]),
        ("y", {"queue": "b"}, [4.0, None]),
    ]


def test_of_three_columns_the_metric_is_the_name() -> None:
    columns = [("time", FLOAT), ("metric", TEXT), ("value", INTEGER)]
    frame = frame_of_rows("A", columns, [(10, "left", 1)], "time_series")
    assert curves_of(frame) == [("time", None, [10_000.0]), ("left", None, [1.0])]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("0", [0.0, 7.0, 0.0, 8.0]), ("NULL", [None, 7.0, None, 8.0]), ("previous", [None, 7.0, 7.0, 8.0])],
)
def test_gaps_are_filled_over_the_whole_time_shown(mode: str, expected: list[float | None]) -> None:
    times = [START.timestamp() + 10, START.timestamp() + 30]
    rows = list(zip(times, (7, 8), strict=True))
    frame = frame_of_rows("A", [("time", FLOAT), ("x", INTEGER)], rows, "time_series")
    filled = fill_gaps(frame, START, START + timedelta(seconds=30), 10_000, mode)
    assert filled["fields"][1]["values"] == expected
    assert filled["fields"][0]["values"][0] == START.timestamp() * 1000


def test_a_query_says_itself_whether_its_gaps_are_filled() -> None:
    assert fill_of("$__timeGroupAlias(at, $__interval, 0)", 5000) == (5000, "0")
    assert fill_of("$__timeGroupAlias(coalesce(a, b), '1m', previous)", 5000) == (60_000, "previous")
    assert fill_of("$__timeGroupAlias(at, $__interval)", 5000) is None


SAMPLES = [{"metric": {"host": "a"}, "values": [[1.5, "2"]]}, {"metric": {"side": "s"}, "values": [[1.5, "NaN"]]}]


def test_curves_of_prometheus_are_named_by_their_legend() -> None:
    first, second = frames_of_curves({"refId": "B", "legendFormat": "of {{ host }}{{side}}"}, SAMPLES, 2000)
    assert [frame["fields"][1]["config"] for frame in (first, second)] == [
        {"displayNameFromDS": "of a"},
        {"displayNameFromDS": "of s"},
    ]
    assert first["fields"][0] == {"name": "Time", "type": "time", "values": [1500.0], "config": {"interval": 2000}}
    assert second["fields"][1]["values"] == [None]


def test_samples_become_a_table_with_a_column_for_each_label() -> None:
    table = table_of_samples({"refId": "C"}, SAMPLES, "Value #C")
    assert [(field["name"], field["values"]) for field in table["fields"]] == [
        ("Time", [1500.0, 1500.0]),
        ("host", ["a", ""]),
        ("side", ["", "s"]),
        ("Value #C", [2.0, None]),
    ]
    assert table_of_samples({"refId": "C"}, [], "Value")["fields"] == []


def test_panels_of_collapsed_rows_are_asked_too() -> None:
    board = {"panels": [{"type": "stat", "id": 1}, {"type": "row", "id": 2, "panels": [{"type": "table", "id": 3}]}]}
    assert [panel["id"] for panel in list_panels(board)] == [1, 3]


def test_a_panel_that_repeats_itself_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="Of each host"):
        list(list_panels({"panels": [{"type": "stat", "id": 1, "title": "Of each host", "repeat": "host"}]}))


def test_the_proxy_lets_so_many_requests_pass_each_second() -> None:
    throttle = Throttle(2)
    assert [throttle.admits(now) for now in (1.0, 1.4, 1.9, 2.0)] == [True, True, False, True]
    assert all(Throttle().admits(1.0) for _ in range(100))


def test_the_lock_file_names_no_host() -> None:
    text = (FOLDER / "drawing" / "package-lock.json").read_text(encoding="utf-8")
    packages = json.loads(text)["packages"]
    assert "://" not in text
    assert len(packages) > 100
    assert all("integrity" in package for name, package in packages.items() if name)
