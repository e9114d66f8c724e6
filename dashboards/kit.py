"""Panels of the core types, with the same defaults everywhere."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, stat, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    DataSourceRef,
    VizOrientation,
)

from sources import DASHBOARD, POSTGRES, PROMETHEUS, AnswerOf, Sql, over_time, present

Threshold = tuple[float | None, str]
"""From this value on (None: from the least) a number has this colour."""
PLAIN: tuple[Threshold, ...] = ((None, "text"),)
MOVES: tuple[Threshold, ...] = ((None, "text"), (0.01, "blue"))
"""A rate of nothing is grey. No rate is green: only the state says that all is well."""


BY_NAME = dashboard.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)
"""A curve of one name, such as a host, has one colour in every panel."""


@dataclass(frozen=True)
class Look:
    """Title, description and size of a panel, the unit of its values and their colours."""

    title: str
    description: str
    width: int = 12
    height: int = 8
    unit: str = "locale"
    decimals: int | None = None
    none: str = "no data yet"
    """What is written where there is no value."""
    colours: Mapping[str, str] = field(default_factory=dict[str, str])
    """Colours of single columns; of curves, those whose names begin with this."""
    steps: tuple[Threshold, ...] = PLAIN
    links: tuple[dashboard.DashboardLink, ...] = ()
    """Where a click on a value leads."""
    help: dashboard.DashboardLink | None = None
    """What to do, beside the title."""


def dress(panel: Any, look: Look, source: DataSourceRef) -> Any:
    """Give a panel its look."""
    panel = panel.title(look.title).description(look.description).span(look.width).height(look.height)
    panel = panel.datasource(source).unit(look.unit).no_value(look.none).thresholds(thresholds(*look.steps))
    if look.decimals is not None:
        panel = panel.decimals(look.decimals)
    if look.links:
        panel = panel.data_links(list(look.links))
    if look.help:
        panel = panel.links([look.help])
    for name, colour in look.colours.items():
        if isinstance(panel, timeseries.Panel):  # the name of a queue may follow
            panel = panel.override_by_regexp(f"/^{re.escape(name)}\\b/", fixed(colour))
        else:
            panel = panel.override_by_name(name, fixed(colour))
    return panel


def override(name: str, value: object) -> model.DynamicConfigValue:
    """Return one property of a column, other than the panel's."""
    return model.DynamicConfigValue(name, value)


def fixed(colour: str) -> list[model.DynamicConfigValue]:
    """Return a colour that does not depend on the value."""
    return [override("color", {"mode": "fixed", "fixedColor": colour})]


def thresholds(*steps: Threshold) -> dashboard.ThresholdsConfig:
    """Return the colours of numbers, from the least value to the greatest."""
    found = [model.Threshold(value=value, color=colour) for value, colour in steps]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(found)


def words(meaning: Mapping[str, tuple[str, str]]) -> model.ValueMap:
    """Return a value mapping: a value's text and colour."""
    options = {
        value: model.ValueMappingResult(text=text, color=colour, index=index)
        for index, (value, (text, colour)) in enumerate(meaning.items())
    }
    return model.ValueMap(options=options)


def matching(pattern: str, colour: str, text: str | None = None) -> model.RegexMap:
    """Return a value mapping: the colour of texts that match, and what is shown; None: the text itself."""
    result = model.ValueMappingResult(text=text, color=colour, index=0)
    return model.RegexMap(options=model.DashboardRegexMapOptions(pattern=pattern, result=result))


def no_value(text: str, colour: str | None = None) -> model.SpecialValueMap:
    """Return what is written where a column has no number, and in which colour; None: that of the least number."""
    options = model.DashboardSpecialValueMapOptions(
        match=model.SpecialValueMatch.NULL_AND_NAN, result=model.ValueMappingResult(text=text, color=colour, index=0)
    )
    return model.SpecialValueMap(options=options)


def only(names: Iterable[str]) -> model.DataTransformerConfig:
    """Return a transformation that keeps the time and the columns whose names begin so."""
    pattern = f"/^([Tt]ime$|({'|'.join(re.escape(name) for name in names)})\\b)/"
    return model.DataTransformerConfig("filterFieldsByName", options={"include": {"pattern": pattern}})


@dataclass(frozen=True)
class Answer:
    """A query and where it goes."""

    source: DataSourceRef
    targets: tuple[Builder[Dataquery], ...]


def sql(query: str) -> Answer:
    """Return the rows of queries/`query`.sql."""
    return Answer(POSTGRES, (Sql(query),))


def sql_over_time(query: str) -> Answer:
    """Return the curves of queries/`query`.sql: one for each column but `time`, and for each word in the others."""
    return Answer(POSTGRES, (Sql(query, "time_series"),))


def prom(*queries: tuple[str, str]) -> Answer:
    """Return curves of Prometheus, from pairs of legend and expression."""
    lettered = zip("ABCDEFGHIJ", queries, strict=False)
    return Answer(PROMETHEUS, tuple(over_time(expression, legend, ref) for ref, (legend, expression) in lettered))


def prom_now(expression: str, legend: str = "") -> Answer:
    """Return the present value of an expression, or one for each `legend`."""
    return Answer(PROMETHEUS, (present(expression, legend),))


def same_as(title: str) -> Answer:
    """Return what the panel of this title was answered."""
    return Answer(DASHBOARD, (AnswerOf(title),))


def last(fields: str = "", calc: str = "lastNotNull") -> common.ReduceDataOptions:
    """Return that a panel shows one value of each column that `fields`, a pattern, finds; by default of all numbers."""
    return common.ReduceDataOptions().calcs([calc]).values(False).fields(fields)


def show_stat(
    look: Look,
    answer: Answer,
    *,
    fields: str = "",
    calc: str = "lastNotNull",
    background: bool = False,
    sparkline: bool = False,
) -> stat.Panel:
    """Return a number as large as its panel."""
    panel = with_targets(stat.Panel(), answer).reduce_options(last(fields, calc)).wide_layout(False)
    panel = panel.color_mode(BigValueColorMode.BACKGROUND if background else BigValueColorMode.VALUE)
    panel = panel.graph_mode(BigValueGraphMode.AREA if sparkline else BigValueGraphMode.NONE)
    panel = panel.text_mode(BigValueTextMode.AUTO).orientation(VizOrientation.HORIZONTAL)
    return dress(panel, look, answer.source)


def show_bars(look: Look, answer: Answer) -> bargauge.Panel:
    """Return horizontal bars, one for each number of the rows."""
    values = common.ReduceDataOptions().calcs(["lastNotNull"]).values(True).fields("")
    panel = with_targets(bargauge.Panel(), answer).reduce_options(values).min(0)
    panel = panel.orientation(VizOrientation.HORIZONTAL).display_mode(BarGaugeDisplayMode.BASIC)
    return dress(panel, look, answer.source)


def with_targets(panel: Any, answer: Answer) -> Any:
    """Give a panel its queries."""
    for target in answer.targets:
        panel = panel.with_target(target)
    return panel
