"""What the panels of a dashboard are answered, as Grafana's data frames, written down for the page that draws them."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg

from drawing.queries import View, read_seconds
from support.processes.prometheus_server import Prometheus

Frame = dict[str, Any]
"""`refId` and `fields`: each with `name`, `type`, `values`, `config`, and where it has them `labels`."""
NUMBERS, BOOLEANS, TIMES = {20, 21, 23, 26, 700, 701, 1700}, {16}, {1114, 1184}
"""PostgreSQL's types."""
STEP_SECONDS = 2
"""Between two points of a curve of Prometheus."""


@dataclass(frozen=True)
class Sources:
    """Both data sources; PostgreSQL as of one moment, as the role that Grafana has."""

    connection: psycopg.Connection
    prometheus: Prometheus

    def rows(self, query: str) -> tuple[list[tuple[str, int]], list[tuple[Any, ...]]]:
        """Return the columns, each name and type's OID, and the rows."""
        cursor = self.connection.execute(query.encode())
        return [(column.name, column.type_code) for column in cursor.description or ()], cursor.fetchall()

    def samples(self, expression: str, at: datetime) -> list[dict[str, Any]]:
        """Return the value of each series at a time, as a curve of one point."""
        found = self.prometheus.ask("query", query=expression, time=str(at.timestamp()))
        samples = [{"metric": {}, "value": found["result"]}] if found["resultType"] == "scalar" else found["result"]
        return [{"metric": sample["metric"], "values": [sample["value"]]} for sample in samples]

    def curves(self, expression: str, view: View) -> list[dict[str, Any]]:
        """Return the curves over the time shown, with points at multiples of the step."""
        start, end = (int(moment.timestamp()) // STEP_SECONDS * STEP_SECONDS for moment in (view.start, view.end))
        bounds = {"start": str(start), "end": str(end), "step": str(STEP_SECONDS)}
        return self.prometheus.ask("query_range", query=expression, **bounds)["result"]


def answer_board(board: Mapping[str, Any], sources: Sources, start: datetime, end: datetime) -> dict[str, Any]:
    """Return a dashboard as it opens, with the answers to the panels that are seen then."""
    view, variables = choose(board, sources, View(start, end, {}, STEP_SECONDS))
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    return {
        "board": board,
        "answers": {str(panel["id"]): answer_panel(panel, sources, view) for panel in panels},
        "annotations": [mark for query in board["annotations"]["list"] for mark in annotate(query, sources, view)],
        "variables": variables,
        "from": start.timestamp() * 1000,
        "to": end.timestamp() * 1000,
    }


def choose(board: Mapping[str, Any], sources: Sources, view: View) -> tuple[View, list[dict[str, str]]]:
    """Return what is chosen when somebody opens the dashboard: all, or the first; and what is written above it."""
    values: dict[str, str | Sequence[str]] = {}
    shown: list[dict[str, str]] = []
    for variable in board["templating"]["list"]:
        name, text = variable["name"], "All"
        if variable["type"] == "datasource":
            text = variable["current"]["text"]
        elif variable.get("allValue"):
            values[name] = variable["allValue"]
        else:
            found = [str(row[0]) for row in sources.rows(replace(view, values=values).expand_sql(variable["query"]))[1]]
            values[name] = found if variable["multi"] else found[0]
            text = text if variable["multi"] else found[0]
        shown.append({"label": variable["label"], "text": text})
    return replace(view, values=values), shown


def answer_panel(panel: Mapping[str, Any], sources: Sources, view: View) -> list[Frame]:
    """Return what the panel's own queries are answered; those that name another panel are left to the page."""
    queries = [query for query in panel["targets"] if "panelId" not in query]
    interval = read_seconds(panel["interval"]) if panel.get("interval") else STEP_SECONDS
    return [frame for query in queries for frame in ask(query, sources, replace(view, interval_seconds=interval))]


def ask(query: Mapping[str, Any], sources: Sources, view: View) -> list[Frame]:
    """Return the answer to a query."""
    if "rawSql" in query:
        columns, rows = sources.rows(view.expand_sql(query["rawSql"]))
        return [{"refId": query["refId"], "fields": fields_of_rows(columns, rows)}]
    expression = view.expand_promql(query["expr"])
    if query.get("format") == "table":
        return [table_of_samples(query, sources.samples(expression, view.end))]
    curves = sources.samples(expression, view.end) if query.get("instant") else sources.curves(expression, view)
    return [frame_of_curve(query, curve) for curve in curves]


def annotate(query: Mapping[str, Any], sources: Sources, view: View) -> Iterator[dict[str, Any]]:
    """Yield the marks on the time axes, each `color`, `from`, `to` in milliseconds, and `hiddenOn`."""
    look = {"color": query["iconColor"], "hiddenOn": (query.get("filter") or {}).get("ids", [])}
    if "expr" not in query:
        columns, rows = sources.rows(view.expand_sql(query["target"]["rawSql"]))
        found = {field["name"]: field["values"] for field in fields_of_rows(columns, rows)}
        ends = found.get("timeend", found["time"])
        yield from ({**look, "from": start, "to": end} for start, end in zip(found["time"], ends, strict=True))
        return
    for curve in sources.curves(view.expand_promql(query["expr"]), view):
        times = [float(moment) * 1000 for moment, _ in curve["values"]]
        yield {**look, "from": times[0], "to": times[-1]}


def fields_of_rows(columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return what PostgreSQL's data source makes of rows; `columns`: name and type's OID. A number `time`: seconds."""
    return [_field(name, oid, [row[place] for row in rows]) for place, (name, oid) in enumerate(columns)]


def frame_of_curve(query: Mapping[str, Any], curve: Mapping[str, Any]) -> Frame:
    """Return what Prometheus' data source makes of a curve, `metric` and `values`."""
    legend = re.sub(r"{{\s*(\w+)\s*}}", lambda found: curve["metric"].get(found[1], ""), query["legendFormat"])
    times, numbers = zip(*((moment * 1000, number(value)) for moment, value in curve["values"]), strict=True)
    config = {"displayNameFromDS": legend} if legend else {}
    fields = [
        {"name": "Time", "type": "time", "values": times, "config": {"interval": STEP_SECONDS * 1000}},
        {"name": "Value", "type": "number", "values": numbers, "labels": curve["metric"], "config": config},
    ]
    return {"refId": query["refId"], "fields": fields}


def table_of_samples(query: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> Frame:
    """Return the table of an instant query: time, a column for each label, and the value."""
    labels = sorted({name for sample in samples for name in sample["metric"]})
    columns = [
        ("Time", "time", [sample["values"][0][0] * 1000 for sample in samples]),
        *((label, "string", [sample["metric"].get(label, "") for sample in samples]) for label in labels),
        (f"Value #{query['refId']}", "number", [number(sample["values"][0][1]) for sample in samples]),
    ]
    fields = [{"name": name, "type": kind, "values": values, "config": {}} for name, kind, values in columns]
    return {"refId": query["refId"], "fields": fields if samples else []}


def number(text: Any) -> float | None:
    """Return a value; None where it is no number."""
    return float(text) if text is not None and math.isfinite(float(text)) else None


def _field(name: str, oid: int, values: Sequence[Any]) -> dict[str, Any]:
    if oid in TIMES:
        found, kind = [value and value.timestamp() * 1000 for value in values], "time"
    elif oid in NUMBERS and name == "time":
        found, kind = [float(value) * 1000 for value in values], "time"
    elif oid in NUMBERS:
        found, kind = [number(value) for value in values], "number"
    elif oid in BOOLEANS:
        found, kind = list(values), "boolean"
    else:
        found, kind = [None if value is None else str(value) for value in values], "string"
    return {"name": name, "type": kind, "values": found, "config": {}}
