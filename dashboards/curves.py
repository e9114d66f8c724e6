"""Panels over time: curves, areas upon each other."""

import re

from grafana_foundation_sdk.builders import common, timeseries
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)

from kit import Answer, Look, dress, override, with_targets

AREA = [override("custom.lineWidth", 0), override("custom.fillOpacity", 70), override("custom.showPoints", "never")]
"""The style of what is stacked upon others: an area that vanishes at zero, and no line around those below it."""
MAIN = ("migrated", "perform: S3")
"""Of stacked areas, those that are most of it while all is well."""
DASHED = [override("custom.lineStyle", {"fill": "dash", "dash": [6, 6]}), override("custom.fillOpacity", 0)]
"""The style of a limit or a forecast."""


def show_curves(look: Look, answer: Answer, *, legend: tuple[str, ...] = ()) -> timeseries.Panel:
    """Return curves; `legend`: what a table beside them says of each, sorted by the first."""
    panel = with_targets(timeseries.Panel(), answer).line_width(1).show_points(VisibilityMode.AUTO).min(0)
    panel = panel.fill_opacity(0).span_nulls(False)
    shown = common.VizLegendOptions().show_legend(True).calcs(list(legend))
    if legend:
        shown = shown.display_mode(LegendDisplayMode.TABLE).placement(LegendPlacement.RIGHT)
        shown = shown.width(235).sort_by(legend[0].capitalize()).sort_desc(True)
    else:
        shown = shown.display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    tooltip = common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    return dress(panel.legend(shown).tooltip(tooltip), look, answer.source)


def show_areas(look: Look, answer: Answer) -> timeseries.Panel:
    """Return areas upon each other, in the order of the look's colours: the largest, `MAIN`, alone has a line.

    A line of what is zero would run around what lies below it, in a colour that means something else.
    """
    panel = show_curves(look, answer).fill_opacity(35)
    panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A"))
    for name in [name for name in look.colours if name not in MAIN]:
        panel = panel.override_by_regexp(f"/^{re.escape(name)}\\b/", AREA)
    return panel
