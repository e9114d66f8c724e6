"""What every panel of a dashboard is answered, written down for the page that draws it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from drawing.frames import Frame, frame_of_rows
from drawing.intervals import milliseconds
from drawing.macros import View
from drawing.sources import SourceError, Sources, texts_of
from drawing.variables import Choice, find_by_regex, in_words, write_in

Board = dict[str, Any]
COLUMNS = 24


def answer_board(
    board: Board, sources: Sources, view: View, *, width: int, chosen: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a dashboard with the answers to its panels; `width` in pixels, as the number of points depends on it.

    `chosen`: values of variables; the others have what they have when somebody opens the dashboard.
    """
    view = replace(view, choices=choose(board, sources, view, chosen or {}))
    answers: dict[str, list[Frame]] = {}
    errors: dict[str, str] = {}
    for panel in list_panels(board):
        try:
            answers[str(panel["id"])] = answer_panel(panel, sources, view, width)
        except SourceError as error:
            errors[str(panel["id"])] = str(error)
    shown = [variable for variable in board["templating"]["list"] if variable.get("hide", 0) != 2]
    return {
        "board": write_words(board, view.choices),
        "answers": answers,
        "errors": errors,
        "starts": {
            str(panel["id"]): _shift(panel, view).start.timestamp() * 1000
            for panel in list_panels(board)
            if panel.get("timeFrom")
        },
        "annotations": annotate(board, sources, view, width, errors),
        "variables": [{"label": v.get("label") or v["name"], "text": view.choices[v["name"]].shown} for v in shown],
        "from": view.start.timestamp() * 1000,
        "to": view.end.timestamp() * 1000,
        "width": width,
    }


def list_panels(board: Board) -> Iterator[dict[str, Any]]:
    """Yield the panels of a dashboard, those of collapsed rows too."""
    for panel in board["panels"]:
        if panel.get("repeat"):
            raise NotImplementedError(f"{panel['title']}: repeated panels are not drawn yet")
        if panel["type"] == "row":
            yield from panel.get("panels") or []
        else:
            yield panel


def answer_panel(panel: Mapping[str, Any], sources: Sources, view: View, width: int) -> list[Frame]:
    """Return what the panel's own queries are answered; those that name another panel are left to the page."""
    points = panel.get("maxDataPoints") or int(panel["gridPos"]["w"] / COLUMNS * width)
    queries = [query for query in panel.get("targets", []) if "rawSql" in query or "expr" in query]
    tables = sum(1 for query in queries if query.get("format") == "table" and query.get("instant"))
    shown = _shift(panel, view)
    interval = shown.interval(points, panel.get("interval"))
    asked = [query for query in queries if not query.get("hide")]
    return [frame for query in asked for frame in sources.ask(query, shown, interval, tables)]


def annotate(board: Board, sources: Sources, view: View, width: int, errors: dict[str, str]) -> list[dict[str, Any]]:
    """Return the marks on the time axes, each `name`, `color`, `from`, `to` and `text`; faults go to `errors`."""
    marks: list[dict[str, Any]] = []
    for query in (board.get("annotations") or {}).get("list") or []:
        if query.get("enable") is False or query.get("builtIn"):
            continue
        asked = {"refId": "Anno", "format": "table", **(query.get("target") or {}), **query}
        try:
            spans = _spans(asked, sources, view, width)
        except SourceError as error:
            errors[f"annotation {query['name']}"] = str(error)
            continue
        only = query.get("filter") or {}
        look = {"name": query["name"], "color": query.get("iconColor", "red"), "hiddenOn": only.get("ids", [])}
        marks += [{**look, "from": start, "to": end, "text": text} for start, end, text in spans]
    return marks


def choose(board: Board, sources: Sources, view: View, chosen: Mapping[str, str]) -> dict[str, Choice]:
    """Return what is chosen of each variable when somebody opens the dashboard, or chooses these values."""
    choices: dict[str, Choice] = {}
    for variable in board["templating"]["list"]:
        name = variable["name"]
        found = _values(variable, sources, replace(view, choices=dict(choices)))
        current = {"value": chosen[name]} if name in chosen else variable.get("current")
        choices[name] = _choose({**variable, "current": current}, found)
    return choices


def write_words(thing: Any, choices: Mapping[str, Choice]) -> Any:
    """Return the dashboard with the variables in its titles and texts replaced."""
    if isinstance(thing, list):
        return [write_words(each, choices) for each in thing]
    if not isinstance(thing, dict):
        return thing
    return {
        key: write_in(value, choices, in_words)
        if isinstance(value, str) and key in {"title", "description", "content"}
        else write_words(value, choices)
        for key, value in thing.items()
    }


def _choose(variable: Mapping[str, Any], found: list[tuple[str, str]]) -> Choice:
    """Return the choice of a variable with these texts and values: what the file says, else the first."""
    current = (variable.get("current") or {}).get("value")
    chosen = current if isinstance(current, list) else [current]
    is_list = bool(variable.get("multi") or variable.get("includeAll"))
    if variable.get("includeAll") and ("$__all" in chosen or not found):
        return Choice([value for _, value in found], is_list, variable.get("allValue") or None, "All")
    kept = [(text, value) for text, value in found if value in chosen] or found[:1]
    return Choice([value for _, value in kept], is_list, None, " + ".join(text for text, _ in kept))


def _values(variable: Mapping[str, Any], sources: Sources, view: View) -> list[tuple[str, str]]:
    """Return texts and values that may be chosen of a variable."""
    kind, query = variable["type"], variable.get("query") or ""
    if kind == "datasource":
        current = variable.get("current") or {}
        return [(str(current.get("text") or query), str(current.get("value") or query))]
    if kind != "query":
        texts = [text.strip() for text in str(query).split(",")]
        return [(text.partition(" : ")[0], text.rpartition(" : ")[2]) for text in texts]
    if variable["datasource"]["type"] == "prometheus":
        query = query["query"] if isinstance(query, dict) else query
        values = _values_of_prometheus(view.expand_promql(query, 1000), sources, view)
        return [(value, value) for value in find_by_regex(values, variable.get("regex") or "")]
    columns, rows = sources.rows(view.expand_sql(query["rawSql"] if isinstance(query, dict) else query, 1000))
    return texts_of(rows, columns)


def _values_of_prometheus(query: str, sources: Sources, view: View) -> list[str]:
    """Return what `label_values(...)` finds, or what `query_result(...)` returns, as texts."""
    inner = re.fullmatch(r"(label_values|query_result)\((.*)\)", query.strip(), re.DOTALL)
    if inner is None:
        raise NotImplementedError(f"{query}: only label_values and query_result are known")
    if inner[1] == "label_values":
        selector, _, label = inner[2].rpartition(",")
        return sources.label_values(label.strip(), selector.strip() or None, view)
    samples = sources.samples(inner[2], view.end)
    return [f"{_labels(sample['metric'])} {sample['values'][-1][1]}" for sample in samples]


def _labels(metric: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in metric.items()) + "}"


def _spans(query: Mapping[str, Any], sources: Sources, view: View, width: int) -> list[tuple[float, float, str]]:
    """Return start, end and text of each annotation of a query; times in milliseconds."""
    interval = view.interval(width, query.get("step") or None)
    if "rawSql" in query or "rawQuery" in query:
        sql = str(query.get("rawSql") or query["rawQuery"])
        columns, rows = sources.rows(view.expand_sql(sql, interval))
        found = {
            field["name"]: field["values"] for field in frame_of_rows("Anno", columns, rows, "annotation")["fields"]
        }
        ends = found.get("timeend") or found.get("timeEnd") or found["time"]
        texts = found.get("text") or [""] * len(rows)
        return [(t, end or t, text) for t, end, text in zip(found["time"], ends, texts, strict=True)]
    step = max(interval, view.scrape_seconds * 1000)
    spans: list[tuple[float, float, str]] = []
    for curve in sources.curves(view.expand_promql(query["expr"], step), view, step):
        title = re.sub(r"{{\s*(\w+)\s*}}", lambda f, m=curve["metric"]: m.get(f[1], ""), query.get("titleFormat") or "")
        times = [moment * 1000 for moment, value in curve["values"] if float(value) != 0]
        for moment in times:  # neighbouring points are one span
            if spans and spans[-1][2] == title and moment - spans[-1][1] <= step:
                spans[-1] = (spans[-1][0], moment, title)
            else:
                spans.append((moment, moment, title))
    return spans


def _shift(panel: Mapping[str, Any], view: View) -> View:
    """Return the view of a panel with a time range of its own."""
    own = panel.get("timeFrom")
    if not own:
        return view
    length = timedelta(milliseconds=milliseconds(str(own).removeprefix("now-")))
    return View(view.end - length, view.end, view.choices, view.scrape_seconds)
