"""What the data sources make of rows and of curves: Grafana's data frames, as the page reads them."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Frame = dict[str, Any]
"""`refId`, `name`, and `fields`: each with `name`, `type`, `values`, and where it has them `labels` and `config`."""

_NUMBERS = {20, 21, 23, 26, 700, 701, 1700}
_TIMES = {1082, 1114, 1184}
_BOOLEANS = {16}


def frame_of_rows(ref_id: str, columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[Any]], form: str) -> Frame:
    """Return what PostgreSQL's data source makes of rows; `columns`: name and type's OID; `form`: a query's format."""
    fields = [_field(name, oid, [row[i] for row in rows], form) for i, (name, oid) in enumerate(columns)]
    frame = {"refId": ref_id, "fields": fields}
    is_curve = form == "time_series" and any(field["type"] == "time" for field in fields)
    return widen(frame) if is_curve and any(field["type"] == "string" for field in fields) else frame


def widen(frame: Frame) -> Frame:
    """Return a curve for each value of the texts of a long frame. Source: LongToWide of grafana-plugin-sdk-go."""
    time, *_ = [field for field in frame["fields"] if field["type"] == "time"]
    words = [field for field in frame["fields"] if field["type"] == "string"]
    numbers = [field for field in frame["fields"] if field["type"] in {"number", "boolean"}]
    moments = sorted(set(time["values"]))
    place = {moment: number for number, moment in enumerate(moments)}
    curves: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row, moment in enumerate(time["values"]):
        key = tuple(str(field["values"][row]) for field in words)
        if key not in curves:
            labels = {field["name"]: value for field, value in zip(words, key, strict=True)}
            curves[key] = [_curve(field, labels, len(moments), len(frame["fields"])) for field in numbers]
        for field, curve in zip(numbers, curves[key], strict=True):
            curve["values"][place[moment]] = field["values"][row]
    wide = [curve for key in sorted(curves) for curve in curves[key]]
    return {**frame, "fields": [{**time, "values": moments}, *wide]}


def fill_gaps(frame: Frame, start: datetime, end: datetime, step_ms: int, mode: str) -> Frame:
    """Return a wide frame with a row for each step of the time shown; `mode`: what stands where there was none."""
    time = next((field for field in frame["fields"] if field["type"] == "time"), None)
    if time is None or len(frame["fields"]) < 2:
        return frame
    place = {moment: row for row, moment in enumerate(time["values"])}
    first = int(start.timestamp() * 1000) // step_ms * step_ms
    moments = list(range(first, int(end.timestamp() * 1000) + 1, step_ms))

    def filled(values: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for moment in moments:
            before = found[-1] if mode == "previous" and found else None
            missing = before if mode in {"previous", "NULL"} else float(mode)
            found.append(values[place[moment]] if moment in place else missing)
        return found

    fields = [{**field, "values": moments if field is time else filled(field["values"])} for field in frame["fields"]]
    return {**frame, "fields": fields}


def frames_of_curves(query: Mapping[str, Any], curves: Sequence[Mapping[str, Any]], step_ms: int) -> list[Frame]:
    """Return what Prometheus' data source makes of curves, each `metric` and `values`: a frame for each."""
    return [
        {
            "refId": query["refId"],
            "fields": [
                {"name": "Time", "type": "time", "values": [t * 1000 for t, _ in curve["values"]],
                 "config": {"interval": step_ms}},
                {"name": "Value", "type": "number", "labels": dict(curve["metric"]), "config": _named(query, curve),
                 "values": [number(value) for _, value in curve["values"]]},
            ],
        }
        for curve in curves
    ]  # fmt: skip


def table_of_samples(query: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], value: str) -> Frame:
    """Return the table of an instant query: time, a column for each label, and the column `value`."""
    labels = sorted({name for sample in samples for name in sample["metric"]})
    texts = [{"name": name, "type": "string", "config": {},
              "values": [sample["metric"].get(name, "") for sample in samples]} for name in labels]  # fmt: skip
    times = {"name": "Time", "type": "time", "config": {}, "values": [s["values"][-1][0] * 1000 for s in samples]}
    numbers = {"name": value, "type": "number", "config": {}, "values": [number(s["values"][-1][1]) for s in samples]}
    return {"refId": query["refId"], "fields": [times, *texts, numbers] if samples else []}


def number(text: str) -> float | None:
    """Return a value of Prometheus; None where it is no number."""
    value = float(text)
    return value if math.isfinite(value) else None


def _named(query: Mapping[str, Any], curve: Mapping[str, Any]) -> dict[str, str]:
    legend = query.get("legendFormat") or ""
    if legend in {"", "__auto"}:
        return {}
    name = re.sub(r"{{\s*(\w+)\s*}}", lambda found: curve["metric"].get(found[1], ""), legend)
    return {"displayNameFromDS": name}


def _curve(field: Mapping[str, Any], labels: Mapping[str, str], length: int, width: int) -> dict[str, Any]:
    """Return an empty curve; of three columns, the text `metric` is the curve's whole name."""
    curve = {"name": field["name"], "type": field["type"], "config": {}, "values": [None] * length}
    if width == 3 and set(labels) == {"metric"}:
        return {**curve, "name": labels["metric"]}
    return {**curve, "labels": dict(labels)}


def _field(name: str, oid: int, values: Sequence[Any], form: str) -> dict[str, Any]:
    if form != "table" and name.lower() in {"time", "timeend"} and oid in _NUMBERS:
        found, kind = [None if v is None else float(v) * 1000 for v in values], "time"
    elif oid in _TIMES:
        found, kind = [None if v is None else _moment(v) for v in values], "time"
    elif oid in _NUMBERS:
        found, kind = [None if v is None else number(str(v)) for v in values], "number"
    elif oid in _BOOLEANS:
        found, kind = list(values), "boolean"
    else:
        found, kind = [None if v is None else str(v) for v in values], "string"
    return {"name": name, "type": kind, "values": found, "config": {}}


def _moment(value: Any) -> float:
    """Return the milliseconds since 1970 of a time, or of a date; without a zone, UTC is meant."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000
