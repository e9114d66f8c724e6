"""What the pictures of the dashboards rest on: macros, variables, data frames. Drawing itself needs node."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from drawing.__main__ import PICTURES, PUBLISHED
from drawing.answers import fields_of_rows, frame_of_curve, table_of_samples
from drawing.queries import View, read_seconds
from support.screens.grafana import FOLDER

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
VALUES = {"host": ["a.b", "c"], "migration": "o'neil", "nobody": [], "everybody": ".*"}
VIEW = View(START, START + timedelta(minutes=5), VALUES)
TEXT, INTEGER, FLOAT, STAMP = 25, 23, 701, 1184


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "where $__timeFilter(finished_at)",
            "where finished_at BETWEEN '2026-11-22T12:00:00Z' AND '2026-11-22T12:05:00Z'",
        ),
        ("$__timeFrom() $__timeTo()", "'2026-11-22T12:00:00Z' '2026-11-22T12:05:00Z'"),
        ("$__unixEpochTo() - $__unixEpochFrom()", f"{START.timestamp() + 300:.0f} - {START.timestamp():.0f}"),
        ("$__timeGroupAlias(at, $__interval, 0)", 'floor(extract(epoch from at)/10)*10 AS "time"'),
        ("$__timeGroupAlias(at, '1m', 0)", 'floor(extract(epoch from at)/60)*60 AS "time"'),
        ("host in (${host:sqlstring})", "host in ('a.b','c')"),
        ("host in (${nobody:sqlstring})", "host in ()"),
        ("name = ${migration:sqlstring}", "name = 'o''neil'"),
        ("/ $__interval_ms", "/ 10000"),
    ],
)
def test_sql_is_written_as_grafana_writes_it(query: str, expected: str) -> None:
    assert VIEW.expand_sql(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('rate(x{host=~"$host"}[$__rate_interval])', 'rate(x{host=~"(a\\\\.b|c)"}[40s])'),
        ("increase(x[$__range])", "increase(x[300s])"),
        ('x{migration="$migration"}', 'x{migration="o\'neil"}'),
        ('{host=~"$nobody"}', '{host=~"()"}'),
        ('{host=~"$everybody"}', '{host=~".*"}'),
        ('label_replace(x, "why", "$1 %", "n", "(.*)")', 'label_replace(x, "why", "$1 %", "n", "(.*)")'),
    ],
)
def test_promql_is_written_as_grafana_writes_it(query: str, expected: str) -> None:
    assert VIEW.expand_promql(query) == expected


def test_what_is_not_known_is_refused() -> None:
    for query in ("$__timeGroup(at, '1m')", "${host:csv}", "$other"):
        with pytest.raises(ValueError, match="is not known"):
            VIEW.expand_sql(query)
    assert [read_seconds(text) for text in ("10s", "1m", "24h", "1d")] == [10, 60, 86_400, 86_400]
    with pytest.raises(ValueError, match="'soon'"):
        read_seconds("soon")


def test_rows_become_fields_of_their_types() -> None:
    columns = [("at", STAMP), ("entries", INTEGER), ("host", TEXT), ("ratio", FLOAT), ("time", FLOAT)]
    rows = [(START, 3, "a", None, 1.5), (None, 4, None, float("nan"), 3)]
    assert [(field["name"], field["type"], field["values"]) for field in fields_of_rows(columns, rows)] == [
        ("at", "time", [START.timestamp() * 1000, None]),
        ("entries", "number", [3.0, 4.0]),
        ("host", "string", ["a", None]),
        ("ratio", "number", [None, None]),
        ("time", "time", [1500.0, 3000.0]),
    ]


SAMPLES = [{"metric": {"host": "a"}, "values": [[1.5, "2"]]}, {"metric": {"side": "s"}, "values": [[1.5, "NaN"]]}]


def test_curves_of_prometheus_are_named_by_their_legend() -> None:
    query = {"refId": "B", "legendFormat": "of {{ host }}{{side}}"}
    times, values = zip(*(frame_of_curve(query, curve)["fields"] for curve in SAMPLES), strict=True)
    assert [field["config"] for field in values] == [{"displayNameFromDS": "of a"}, {"displayNameFromDS": "of s"}]
    assert [list(field["values"]) for field in (*times, *values)] == [[1500.0], [1500.0], [2.0], [None]]


def test_samples_become_a_table_with_a_column_for_each_label() -> None:
    table = table_of_samples({"refId": "C"}, SAMPLES)
    assert [(field["name"], field["values"]) for field in table["fields"]] == [
        ("Time", [1500.0, 1500.0]),
        ("host", ["a", ""]),
        ("side", ["", "s"]),
        ("Value #C", [2.0, None]),
    ]
    assert table_of_samples({"refId": "C"}, [])["fields"] == []


def test_the_lock_file_names_no_host() -> None:
    text = (FOLDER / "drawing" / "package-lock.json").read_text(encoding="utf-8")
    packages = json.loads(text)["packages"]
    assert "://" not in text
    assert len(packages) > 100
    assert all("integrity" in package for name, package in packages.items() if name)


def test_the_pictures_of_docs_are_as_small_as_they_are_written() -> None:
    palette = 3  # the colour type of a PNG, in its byte 25; source: PNG specification, IHDR
    for name in (*PUBLISHED, "report"):
        assert (PICTURES / f"{name}.png").read_bytes()[25] == palette, f"{name}.png: run `make pictures`"
        assert (PICTURES / f"{name}.png").stat().st_size < 160_000, name
