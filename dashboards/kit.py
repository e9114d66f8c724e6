"""Panels of the core types, with the same defaults everywhere."""

from dataclasses import dataclass, field
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, piechart, stat, table, text, timeseries
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    DataSourceRef,
    LegendDisplayMode,
    LegendPlacement,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.piechart import PieChartLegendValues
from grafana_foundation_sdk.models.text import TextMode

from sources import POSTGRES, PROMETHEUS, Sql, at_once, over_time

Threshold = tuple[float | None, str]
"""From this value on (None: from the least) a number has this colour."""


@dataclass(frozen=True)
class Look:
    """Title, description and size of a panel, the units of its values and their colours."""

    title: str
    description: str
    width: int = 12
    height: int = 8
    unit: str | None = None
    decimals: int | None = None
    units: dict[str, str] = field(default_factory=dict[str, str])
    """Units of single columns."""
    colours: dict[str, str] = field(default_factory=dict[str, str])
    """Colours of single columns; of curves, those whose names contain this."""
    words: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Colours of the words in single columns."""


def dress(panel: Any, look: Look, source: DataSourceRef) -> Any:
    """Give a panel its look."""
    panel = panel.title(look.title).description(look.description).span(look.width).height(look.height)
    panel = panel.datasource(source)
    if look.unit:
        panel = panel.unit(look.unit)
    if look.decimals is not None:
        panel = panel.decimals(look.decimals)
    for name, unit in look.units.items():
        panel = panel.override_by_name(name, [model.DynamicConfigValue("unit", unit)])
    for name, colour in look.colours.items():
        fixed = [model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})]
        if isinstance(panel, timeseries.Panel):  # the name of a queue is in the names of its curves
            panel = panel.override_by_regexp(name.replace("/", r"\/"), fixed)
        else:
            panel = panel.override_by_name(name, fixed)
    for name, colours in look.words.items():
        mapping = {"type": "value", "options": {word: {"color": colour} for word, colour in colours.items()}}
        cells = model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"})
        panel = panel.override_by_name(name, [cells, model.DynamicConfigValue("mappings", [mapping])])
    return panel


def last(*, of_each_row: bool = False) -> common.ReduceDataOptions:
    """Return that a panel shows the last value of each column; or each value of each row, by the row's words."""
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(of_each_row)


def thresholds(*steps: Threshold) -> dashboard.ThresholdsConfig:
    """Return the colours of numbers, from the least value to the greatest."""
    found = [model.Threshold(value=value, color=colour) for value, colour in steps]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(found)


def sql_stat(look: Look, query: str, *, fields: str = "") -> stat.Panel:
    """Return single numbers, one for each column of the query's one row; `fields` "/.*/" shows words as well."""
    panel = stat.Panel().with_target(Sql(query)).reduce_options(last().fields(fields))
    panel = panel.color_mode(BigValueColorMode.NONE).graph_mode(BigValueGraphMode.NONE)
    return dress(panel.text_mode(BigValueTextMode.VALUE_AND_NAME), look, POSTGRES)


def sql_pie(look: Look, query: str) -> piechart.Panel:
    """Return a pie with a slice for each number of the query's rows."""
    legend = piechart.PieChartLegendOptions().show_legend(True).display_mode(LegendDisplayMode.TABLE)
    legend = legend.placement(LegendPlacement.RIGHT)
    legend = legend.values([PieChartLegendValues.VALUE, PieChartLegendValues.PERCENT])
    panel = piechart.Panel().with_target(Sql(query)).reduce_options(last(of_each_row=True)).legend(legend)
    return dress(panel, look, POSTGRES)


def sql_bars(look: Look, query: str) -> bargauge.Panel:
    """Return horizontal bars, one for each number of the query's rows."""
    panel = bargauge.Panel().with_target(Sql(query)).reduce_options(last(of_each_row=True)).min(0)
    return dress(panel.orientation(VizOrientation.HORIZONTAL), look, POSTGRES)


def sql_table(look: Look, query: str) -> table.Panel:
    """Return a table of what the query returns."""
    return dress(table.Panel().with_target(Sql(query)), look, POSTGRES)


def sql_curves(look: Look, query: str, *, interval: str = "10s") -> timeseries.Panel:
    """Return curves over time, one for each column but `time`, and each `metric`; `interval`: between two points."""
    return dress(curves().with_target(Sql(query, "time_series")).interval(interval), look, POSTGRES)


def prom_curves(look: Look, *queries: tuple[str, str]) -> timeseries.Panel:
    """Return curves over time, from pairs of legend and expression."""
    panel = curves()
    for ref_id, (legend, expression) in zip("ABCDEFGH", queries, strict=False):
        panel = panel.with_target(over_time(expression, legend, ref_id))
    return dress(panel, look, PROMETHEUS)


def prom_stat(look: Look, expression: str, *steps: Threshold, legend: str = "") -> stat.Panel:
    """Return the present value of an expression, or one for each `legend`."""
    panel = stat.Panel().with_target(at_once(expression, legend)).reduce_options(last())
    panel = panel.thresholds(thresholds(*steps or ((None, "text"),)))
    panel = panel.color_mode(BigValueColorMode.VALUE).graph_mode(BigValueGraphMode.NONE)
    return dress(panel, look, PROMETHEUS)


def curves() -> timeseries.Panel:
    """Return an empty panel of curves."""
    legend = common.VizLegendOptions().show_legend(True).display_mode(LegendDisplayMode.LIST)
    legend = legend.placement(LegendPlacement.BOTTOM).calcs([])
    panel = timeseries.Panel().line_width(1).fill_opacity(12).show_points(VisibilityMode.NEVER)
    return panel.min(0).legend(legend)


def words(title: str, markdown: str, *, width: int = 12, height: int = 8) -> text.Panel:
    """Return a panel of text."""
    panel = text.Panel().mode(TextMode.MARKDOWN).content(markdown)
    return panel.title(title).span(width).height(height)
