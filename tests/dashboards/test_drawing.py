"""What the pictures of the dashboards rest on: macros and variables. Drawing itself needs node."""

from datetime import UTC, datetime, timedelta

import pytest

from drawing.queries import View, read_seconds

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
VALUES = {"host": ["a.b", "c"], "migration": "o'neil", "nobody": [], "everybody": ".*"}
VIEW = View(START, START + timedelta(minutes=5), VALUES)


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
