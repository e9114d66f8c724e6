"""What surrounds the panels: variables, annotations and links, the same on both dashboards."""

from typing import Literal

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import DataSourceRef

from sources import POSTGRES, PROMETHEUS, PROVISIONED, Sql, over_time, read_query

Choice = Literal["one", "first", "all"]
"""What may be chosen of a variable: one value; several, at first the first one; or several, at first all."""

LABELS = {"postgresql": "PostgreSQL", "prometheus": "Prometheus"}


def start_board(title: str, uid: str, *sources: DataSourceRef) -> dashboard.Dashboard:
    """Return a dashboard without panels, with the variables that its data sources are."""
    board = dashboard.Dashboard(title).uid(uid).tags(["rowferry"]).timezone("browser").editable()
    board = board.time("now-1h", "now").refresh("30s").tooltip(model.DashboardCursorSync.CROSSHAIR)
    for source in sources:
        board = board.with_variable(_source_variable(source))
    return board


def _source_variable(source: DataSourceRef) -> dashboard.DatasourceVariable:
    """Return the variable that a data source's UID names; at first it is the provisioned one, if that is there."""
    assert source.uid is not None
    assert source.type_val is not None
    name = source.uid.strip("${}")
    variable = dashboard.DatasourceVariable(name).label(LABELS[name]).type(source.type_val)
    return variable.current(model.VariableOption(text=f"rowferry {LABELS[name]}", value=PROVISIONED[name]))


def sql_variable(name: str, label: str, query: str, choice: Choice = "one") -> dashboard.QueryVariable:
    """Return a template variable with the values that queries/`query`.sql returns."""
    return _variable(name, label, read_query(query), POSTGRES, choice)


def prom_variable(
    name: str, label: str, query: str, choice: Choice = "all", regex: str = ""
) -> dashboard.QueryVariable:
    """Return a template variable with the values of a label, or of what `regex` finds in the results of a query."""
    return _variable(name, label, query, PROMETHEUS, choice).regex(regex)


def _variable(name: str, label: str, query: str, source: DataSourceRef, choice: Choice) -> dashboard.QueryVariable:
    """Return a variable; its values stay in the order in which they come, and without "All" the first is chosen.

    "All" is written as `.+`: a list of values would be empty, or end, before the first worker and after the last.
    """
    is_all = choice == "all"
    variable = dashboard.QueryVariable(name).label(label).query(query).datasource(source)
    variable = variable.multi(choice != "one").include_all(is_all).sort(model.VariableSort.DISABLED)
    variable = variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    if not is_all:
        return variable
    everything = model.VariableOption(text="All", value="$__all", selected=True)
    return variable.all_value(".+").current(everything)


def annotate_sql(name: str, query: str, colour: str) -> dashboard.AnnotationQuery:
    """Return marks at the times that queries/`query`.sql returns."""
    return _annotation(name, POSTGRES, colour).target(Sql(query))


def annotate_prom(name: str, expression: str, colour: str, title: str) -> dashboard.AnnotationQuery:
    """Return regions in which an expression has a value; `title` names its labels in `{{ }}`."""
    marks = _annotation(name, PROMETHEUS, colour).target(over_time(expression, ""))
    return marks.expr(expression).title_format(title).step("15s")


def _annotation(name: str, source: DataSourceRef, colour: str) -> dashboard.AnnotationQuery:
    return dashboard.AnnotationQuery().name(name).datasource(source).enable(True).icon_color(colour)


def annotate_alerts() -> dashboard.AnnotationQuery:
    """Return regions in which an alert of rowferry fires."""
    firing = 'ALERTS{alertname=~"Rowferry.*",alertstate="firing"}'
    return annotate_prom("Alerts", firing, "red", "{{alertname}}")


def runbook(alert: str = "") -> str:
    """Return where the runbook says what to do, about one alert or about all."""
    page = "https://github.com/rowferry/rowferry/blob/main/docs/runbook.md"
    return f"{page}#{alert.lower()}" if alert else page


def link(title: str, url: str, *, keep: bool = False, tooltip: str = "") -> dashboard.DashboardLink:
    """Return a link; `keep`: with the time shown and the values of the variables."""
    made = dashboard.DashboardLink(title).type(model.DashboardLinkType.LINK).url(url).icon("external link")
    return made.keep_time(keep).include_vars(keep).tooltip(tooltip).target_blank(not keep)
