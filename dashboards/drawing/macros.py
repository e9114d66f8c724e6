"""What the data sources write in place of macros and variables, before a query is sent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from drawing.intervals import as_text, choose_interval, milliseconds, rate_interval
from drawing.variables import Choice, in_promql, in_sql, write_in

ARGUMENTS = r"\(((?:[^()]|\([^()]*\))*)\)"
"""The arguments of a macro, in which a call may stand."""


@dataclass(frozen=True)
class View:
    """What a reader looks at: the time shown, and the values chosen above the panels."""

    start: datetime
    end: datetime
    choices: Mapping[str, Choice]
    scrape_seconds: int = 15

    def interval(self, points: int, least: str | None) -> int:
        """Return the milliseconds between two points of a panel."""
        return choose_interval(self.start, self.end, points, least)

    def expand_sql(self, query: str, interval_ms: int) -> str:
        """Return the SQL that PostgreSQL receives. Source: Grafana, "PostgreSQL query editor", macros."""
        query = write_in(query, self._globals(interval_ms) | dict(self.choices), in_sql)
        start, end = f"'{_iso(self.start)}'", f"'{_iso(self.end)}'"
        seconds = int(self.start.timestamp()), int(self.end.timestamp())
        replacements = {
            rf"\$__timeFilter{ARGUMENTS}": rf"\1 BETWEEN {start} AND {end}",
            rf"\$__unixEpochFilter{ARGUMENTS}": rf"\1 >= {seconds[0]} AND \1 <= {seconds[1]}",
            r"\$__timeFrom\(\)": start,
            r"\$__timeTo\(\)": end,
            r"\$__unixEpochFrom\(\)": str(seconds[0]),
            r"\$__unixEpochTo\(\)": str(seconds[1]),
            rf"\$__time{ARGUMENTS}": r'\1 AS "time"',
            rf"\$__timeEpoch{ARGUMENTS}": r'extract(epoch from \1) as "time"',
        }
        for pattern, replacement in replacements.items():
            query = re.sub(pattern, replacement, query)
        return re.sub(rf"\$__timeGroup(Alias)?{ARGUMENTS}", _group, query)

    def expand_promql(self, query: str, interval_ms: int) -> str:
        """Return the PromQL that Prometheus receives."""
        return write_in(query, self._globals(interval_ms) | dict(self.choices), in_promql)

    def _globals(self, interval_ms: int) -> dict[str, Choice]:
        """Return the variables that every dashboard has."""
        shown_ms = int((self.end - self.start).total_seconds() * 1000)
        values = {
            "__interval": as_text(interval_ms),
            "__interval_ms": str(interval_ms),
            "__rate_interval": as_text(rate_interval(interval_ms, self.scrape_seconds * 1000)),
            "__range": f"{shown_ms // 1000}s",
            "__range_s": str(shown_ms // 1000),
            "__range_ms": str(shown_ms),
            "__from": str(int(self.start.timestamp() * 1000)),
            "__to": str(int(self.end.timestamp() * 1000)),
        }
        return {name: Choice([value]) for name, value in values.items()}


def fill_of(query: str, interval_ms: int) -> tuple[int, str] | None:
    """Return step in milliseconds and mode (`0`, `NULL`, `previous`) of a query that wants its gaps filled."""
    found = re.search(rf"\$__timeGroup(?:Alias)?{ARGUMENTS}", query)
    arguments = _split(found[1]) if found else []
    if len(arguments) < 3:
        return None
    step = arguments[1].strip("'\"")
    return (interval_ms if "$__interval" in step else milliseconds(step)), arguments[2]


def _group(found: re.Match[str]) -> str:
    column, interval, *_ = _split(found[2])
    seconds = f"{milliseconds(interval.strip(chr(39))) / 1000:g}"
    alias = ' AS "time"' if found[1] else ""
    return f"floor(extract(epoch from {column})/{seconds})*{seconds}{alias}"


def _split(arguments: str) -> list[str]:
    """Return the arguments of a macro; a comma inside of brackets separates none."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", arguments)]


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
