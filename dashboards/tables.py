"""Tables: what each column shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models import dashboard as model

from kit import PLAIN, Answer, Look, Threshold, dress, no_value, override, thresholds, words

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
    wraps: bool = False
    """Whether it is written in full, on as many lines as it takes."""
    mappings: tuple[object, ...] = ()
    """Value mappings, beside those of `words`."""
    url: str = ""
    """Where a click on a value leads."""

    def properties(self) -> list[model.DynamicConfigValue]:
        """Return what is different from the panel's other columns."""
        found = [
            ("unit", self.unit),
            ("custom.width", self.width),
            ("decimals", self.decimals),
            (
                "mappings",
                self.mappings
                or [
                    words(self.words)
                    if self.words
                    else no_value("–", "transparent" if self.cell == "color-background" else None)
                ],
            ),
            ("thresholds", thresholds(*self.steps).build() if self.steps != PLAIN else None),
            ("custom.cellOptions", {"type": self.cell, "mode": "basic"} if self.cell else None),
            ("custom.cellOptions", {"type": "auto", "wrapText": True} if self.wraps else None),
            ("custom.wrapText", self.wraps or None),
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


def only_with(panel: table.Panel, column: str) -> table.Panel:
    """Return a table without the rows that have nothing in a column."""
    has_it = {"fieldName": column, "config": {"id": "isNotNull", "options": {}}}
    options = {"filters": [has_it], "type": "include", "match": "all"}
    return panel.with_transformation(model.DataTransformerConfig("filterByValue", options=options))
