"""Tables: what each column shows, and the hosts' table, which both dashboards have."""

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models import dashboard as model

from frame import what_to_do
from kit import PLAIN, Answer, Look, Threshold, dress, no_value, override, thresholds, words
from promql import FAILED, IS_MOVING, cpu, memory, percentile, rate
from sources import PROMETHEUS, at_once

BAD: tuple[Threshold, ...] = ((None, "transparent"), (1, "red"))
"""None is well; one is too many."""
WARN: tuple[Threshold, ...] = ((None, "transparent"), (1, "dark-orange"))
"""None is well; one is no harm by itself."""
LEAST_WIDTH = 50
"""Pixels of a column that has no width of its own: the last column of a table must not lie beyond its edge."""


@dataclass(frozen=True)
class Column:
    """How a column looks; by default as its panel says."""

    name: str
    unit: str | None = None
    width: int | None = None
    decimals: int | None = None
    words: dict[str, tuple[str, str]] | None = None
    """Text and colour of its values."""
    steps: tuple[Threshold, ...] = PLAIN
    cell: str = ""
    """`color-background`, `color-text` or `gauge`; empty: plain."""
    most: float | None = None
    """The full length of a gauge."""
    whole: bool = False
    """Whether a click shows the text in full, to be copied."""
    url: str = ""
    """Where a click on a value leads."""

    def properties(self) -> list[model.DynamicConfigValue]:
        """Return what is different from the panel's other columns."""
        found = [
            ("unit", self.unit),
            ("custom.width", self.width),
            ("decimals", self.decimals),
            ("mappings", [words(self.words) if self.words else no_value("–")]),
            ("thresholds", thresholds(*self.steps).build() if self.steps != PLAIN else None),
            ("custom.cellOptions", {"type": self.cell, "mode": "basic"} if self.cell else None),
            ("min", 0 if self.cell == "gauge" else None),
            ("max", self.most),
            ("fieldMinMax", True if self.cell == "gauge" and self.most is None else None),
            ("custom.inspect", self.whole or None),
            ("links", [{"title": "", "url": self.url}] if self.url else None),
        ]
        return [override(name, value) for name, value in found if value is not None]


def show_table(look: Look, answer: Answer, *columns: Column) -> table.Panel:
    """Return a table; `columns` that are not named look as the panel says."""
    panel = table.Panel()
    for target in answer.targets:
        panel = panel.with_target(target)
    panel = dress(panel.min_width(LEAST_WIDTH), look, answer.source)
    panel = panel.override_by_regexp("/.*/", [override("noValue", "–")])  # the panel's is for a table without rows
    for column in columns:
        panel = panel.override_by_name(column.name, column.properties())
    return panel


def join_tables(panel: table.Panel, names: Sequence[str], shown: Sequence[str]) -> table.Panel:
    """Return a table of several answers of Prometheus, joined by their labels, in the order of the rows of the first.

    `names`: of queries A, B, C, ...; `shown`: labels and names in the order of their columns.
    """
    values = {f"Value #{letter}": name for letter, name in zip("ABCDEFGHIJKLMN", names, strict=False)}
    columns = {name: column for column, name in values.items()}
    panel = panel.with_transformation(model.DataTransformerConfig("merge", options={}))
    left_out = ["Time", *(column for column, name in values.items() if name not in shown)]
    return panel.with_transformation(
        model.DataTransformerConfig(
            "organize",
            options={
                "excludeByName": dict.fromkeys(left_out, True),
                "indexByName": {columns.get(name, name): place for place, name in enumerate(shown)},
                "renameByName": {column: name for column, name in values.items() if name in shown},
            },
        )
    )


def show_hosts(here: str, hosts: str, height: int, *, link: str = "") -> table.Panel:
    """Return a row for each host that was seen in the time shown, the slowest first.

    `here`: the selector of its workers, `hosts`: that of what the database knows of it; `link`: of a host's name.
    """
    columns = {**_of_workers(here), **_of_database(here, hosts)}
    columns["version of"] = f"topk by (host) (1, count by (host, version) ({_seen(here)}))"
    targets = tuple(
        at_once(expression, letter) for letter, expression in zip("ABCDEFGHI", columns.values(), strict=True)
    )
    look = Look(
        "Hosts",
        "One row for each host that was seen in the time shown, the slowest first. Red: no process is left though "
        "entries are, entries fail, the servers throttle, or a process uses a whole core. Orange: a process was lost "
        "within the last hour. Copy p95: 95 % of the objects take less. Of several queues: the greatest. A host with "
        "processes but without other values cannot be scraped; one without any has ended.",
        24,
        height,
        none="no worker has been seen",
        help=what_to_do("RowferryWorkerLost"),
    )
    shown = _columns(link)
    panel = show_table(look, Answer(PROMETHEUS, targets), *shown)
    return join_tables(panel, list(columns), [column.name for column in shown])


def _of_database(here: str, hosts: str) -> dict[str, str]:
    """Return processes and losses; a host that ended by itself has neither."""
    live, lost = f"rowferry_live_workers{{{hosts}}}", f"rowferry_lost_workers{{{hosts}}}"
    processes = f"sum by (host) ({live}) > 0 or sum by (host) ({live}) == 0 and {IS_MOVING}"
    return {
        "processes": f"{processes} or {_nothing(here)}",
        "lost (1 h)": f"sum by (host) ({lost}) or 0 * group by (host) ({_seen(here)})",
    }


def _of_workers(here: str) -> dict[str, str]:
    """Return what the workers say themselves: nothing, as soon as they have ended."""
    work = ",".join(filter(None, [here, 'queue=~"$queue"']))
    entries = rate("rowferry_entries_total", "host, queue", work)
    failed = rate("rowferry_entries_total", "host, queue", f"{work},{FAILED}")
    copies = percentile(0.95, "rowferry_object_seconds", "host, queue", work)
    throttled = rate("rowferry_throttled_requests_total", "host", here)
    shares = f"{throttled} / ({rate('rowferry_requests_total', 'host', here)} > 0)"
    ups = f"group by (host) (rowferry_build_info{{{here}}})"
    while_up, zero = f"and on (host) {ups}", f"or 0 * {ups} or {_nothing(here)}"
    return {
        "entries/s": f"sort(max by (host) ({entries}) {while_up} {zero})",
        "failed": f"max by (host) ({failed} / ({entries} > 0)) {while_up} {zero}",
        "copy p95": f"max by (host) ({copies} >= 0) {while_up} or {_nothing(here)}",
        "throttled": f"{shares} {while_up} {zero}",
        "busiest CPU": f"max by (host) ({cpu(here)}) {while_up} or {_nothing(here)}",
        "memory": f"sum by (host) ({memory(here)}) or {_nothing(here)}",
    }


def _seen(here: str) -> str:
    """Return the workers that were scraped within the time shown."""
    return f"last_over_time(rowferry_build_info{{{here}}}[$__range])"


def _nothing(here: str) -> str:
    """Return no number for each host that was seen, so that no row and no column comes and goes."""
    return f"0 * group by (host) ({_seen(here)}) / 0"


def _columns(link: str) -> tuple[Column, ...]:
    """Return how the columns of the hosts' table look; a width shows what it holds as a whole."""
    here = "color-background"
    shares: tuple[Threshold, ...] = ((None, "transparent"), (0.01, "orange"), (0.05, "red"))
    fails: tuple[Threshold, ...] = ((None, "transparent"), (0.01, "red"))
    return (
        Column("host", url=link),
        Column("processes", width=100, steps=((None, "transparent"), (0, "red"), (1, "transparent")), cell=here),
        Column("lost (1 h)", width=100, steps=WARN, cell=here),
        Column("entries/s", decimals=0, cell="gauge", steps=((None, "green"),)),
        Column("failed", "percentunit", 100, 1, steps=fails, cell=here),
        Column("copy p95", "s", 100, 2),
        Column("throttled", "percentunit", 100, 1, steps=shares, cell=here),
        Column("busiest CPU", "percentunit", 180, 0, steps=((None, "green"), (0.95, "red")), cell="gauge", most=1),
        Column("memory", "bytes", 110),
        Column("version", width=90),
    )
