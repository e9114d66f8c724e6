"""Tables: what each column shows, and the hosts' table, which both dashboards have."""

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models import dashboard as model

from kit import PLAIN, Answer, Look, Threshold, dress, override, thresholds, words
from promql import FAILED, cpu, memory, percentile, rate
from sources import PROMETHEUS, at_once

BAD: tuple[Threshold, ...] = ((None, "transparent"), (1, "red"))
"""None is well; one is too many."""


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
            ("mappings", [words(self.words)] if self.words else None),
            ("thresholds", thresholds(*self.steps).build() if self.steps != PLAIN else None),
            ("custom.cellOptions", {"type": self.cell, "mode": "basic"} if self.cell else None),
            ("min", 0 if self.cell == "gauge" else None),
            ("max", self.most),
            ("fieldMinMax", True if self.cell == "gauge" and self.most is None else None),
            ("noValue", "–"),
            ("custom.inspect", self.whole or None),
            ("links", [{"title": "", "url": self.url}] if self.url else None),
        ]
        return [override(name, value) for name, value in found if value is not None]


def show_table(look: Look, answer: Answer, *columns: Column) -> table.Panel:
    """Return a table; `columns` that are not named look as the panel says."""
    panel = table.Panel()
    for target in answer.targets:
        panel = panel.with_target(target)
    panel = dress(panel, look, answer.source)
    for column in columns:
        panel = panel.override_by_name(column.name, column.properties())
    return panel


def join_tables(panel: table.Panel, names: Sequence[str], left_out: Sequence[str] = ()) -> table.Panel:
    """Return a table of several answers of Prometheus, joined by their labels; `names`: of queries A, B, C, ..."""
    values = {f"Value #{letter}": name for letter, name in zip("ABCDEFGHIJKLMN", names, strict=False)}
    panel = panel.with_transformation(model.DataTransformerConfig("merge", options={}))
    order = {name: place for place, name in enumerate(("host", *values, "version"))}
    return panel.with_transformation(
        model.DataTransformerConfig(
            "organize",
            options={
                "excludeByName": dict.fromkeys(("Time", *left_out), True),
                "indexByName": order,
                "renameByName": values,
            },
        )
    )


def show_hosts(selector: str, height: int, *, link: str = "") -> table.Panel:
    """Return a row for each host whose workers `selector` finds; `link`: of a host's name."""
    here = "{" + selector + "}"
    work = ",".join(filter(None, [selector, 'queue=~"$queue"']))
    entries = rate("rowferry_entries_total", "host, queue", work)
    failed = rate("rowferry_entries_total", "host, queue", f"{work},{FAILED}")
    copies = percentile(0.95, "rowferry_object_seconds", "host, queue", work)
    requests = rate("rowferry_requests_total", "host", selector)
    columns = {
        "processes": "sum by (host) (rowferry_live_workers)",
        "lost (1 h)": "sum by (host) (rowferry_lost_workers)",
        "entries/s": f"max by (host) ({entries})",
        "failed": f"max by (host) ({failed} / ({entries} > 0))",
        "copy p95": f"max by (host) ({copies})",
        "throttled": f"{rate('rowferry_throttled_requests_total', 'host', selector)} / ({requests} > 0)",
        "busiest CPU": f"max by (host) ({cpu(selector)})",
        "memory": f"sum by (host) ({memory(selector)})",
        "": f"topk by (host) (1, count by (host, version) (rowferry_build_info{here}))",
    }
    targets = tuple(
        at_once(expression, letter) for letter, expression in zip("ABCDEFGHI", columns.values(), strict=True)
    )
    look = Look(
        "Hosts",
        "One row a host. Red: a process was lost within the last hour, entries fail, the servers throttle, or a "
        "process uses a whole core. Copy p95: 95 % of the objects take less. Of several queues: the greatest. A host "
        "with processes but without other values cannot be scraped; one without has no live worker in the database.",
        24,
        height,
        none="no worker has been seen",
    )
    panel = show_table(
        look,
        Answer(PROMETHEUS, targets),
        Column("host", url=link),
        Column("processes", decimals=0, steps=((None, "red"), (1, "transparent")), cell="color-background", width=100),
        Column("lost (1 h)", decimals=0, steps=BAD, cell="color-background", width=100),
        Column("entries/s", decimals=0, cell="gauge", steps=((None, "green"),)),
        Column("failed", "percentunit", 100, 1, steps=((None, "transparent"), (0.01, "red")), cell="color-background"),
        Column("copy p95", "s", 100, 2),
        Column(
            "throttled",
            "percentunit",
            100,
            1,
            steps=((None, "transparent"), (0.01, "orange"), (0.05, "red")),
            cell="color-background",
        ),
        Column("busiest CPU", "percentunit", 180, 0, steps=((None, "green"), (0.95, "red")), cell="gauge", most=1),
        Column("memory", "bytes", 110),
        Column("version", width=90),
    )
    names = [name for name in columns if name]
    return join_tables(panel, names, left_out=["Value #I"])
