"""What surrounds the panels: variables, annotations and links, the same on both dashboards."""

from typing import Literal

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import DataSourceRef

from sources import POSTGRES, PROMETHEUS, PROVISIONED, Sql, over_time, read_query

Choice = Literal["one", "several"]
"""What may be chosen of a variable: one value, at first the first; or several, at first all."""

CLUSTER = ("prometheus", "cluster", "job")
CHOSEN_OF_MIGRATION = ("postgresql", *CLUSTER, "migration", "queue")
CHOSEN_OF_WORKERS = (*CLUSTER, "migration", "queue")
"""Variables whose values a link to this dashboard takes along."""
CLUSTERED = 'cluster=~"$cluster"'
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


def prom_variable(name: str, label: str, query: str, *, regex: str = "", every: str = ".+") -> dashboard.QueryVariable:
    """Return a template variable with the values of a label, or of what `regex` finds in the results of a query.

    `every`: the regular expression that stands for all. A list of values would be empty, or end, before the first
    worker and after the last.
    """
    return _variable(name, label, query, PROMETHEUS, "several").regex(regex).all_value(every)


def _variable(name: str, label: str, query: str, source: DataSourceRef, choice: Choice) -> dashboard.QueryVariable:
    """Return a variable; its values stay in the order in which they come."""
    is_several = choice == "several"
    variable = dashboard.QueryVariable(name).label(label).query(query).datasource(source)
    variable = variable.multi(is_several).include_all(is_several).sort(model.VariableSort.DISABLED)
    variable = variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    if not is_several:
        return variable
    return variable.current(model.VariableOption(text="All", value="$__all", selected=True))


def cluster_variables() -> tuple[dashboard.QueryVariable, ...]:
    """Return what chooses one of several databases in a Prometheus; without these labels, all is chosen."""
    ours = '__name__=~"rowferry_build_info|rowferry_exporter_up"'
    return (
        prom_variable("cluster", "Cluster", f"label_values({{{ours}}}, cluster)", every=".*"),
        prom_variable("job", "Job", f'label_values({{{ours},cluster=~"$cluster"}}, job)', every=".*"),
    )


def annotate_sql(name: str, query: str, colour: str) -> dashboard.AnnotationQuery:
    """Return marks at the times that queries/`query`.sql returns."""
    return _annotation(name, POSTGRES, colour).target(Sql(query))


def annotate_prom(name: str, expression: str, colour: str, title: str, step: str = "15s") -> dashboard.AnnotationQuery:
    """Return regions in which an expression has a value, seen each `step`; `title` names its labels in `{{ }}`."""
    marks = _annotation(name, PROMETHEUS, colour).target(over_time(expression, ""))
    return marks.expr(expression).title_format(title).step(step)


def _annotation(name: str, source: DataSourceRef, colour: str) -> dashboard.AnnotationQuery:
    return dashboard.AnnotationQuery().name(name).datasource(source).enable(True).icon_color(colour)


def annotate_alerts() -> dashboard.AnnotationQuery:
    """Return a mark where an alert of rowferry has begun to fire, for a chosen migration or for none."""
    firing = f'ALERTS{{alertname=~"Rowferry.*",alertstate="firing",migration=~"$migration|",{CLUSTERED}}}'
    return annotate_prom("Alerts", f"{firing} unless {firing.replace('}', '} offset 1m')}", "red", "{{alertname}}")


def runbook(alert: str = "") -> str:
    """Return where the runbook says what to do, about one alert or about all."""
    page = "https://github.com/rowferry/rowferry/blob/main/docs/runbook.md"
    return f"{page}#{alert.lower()}" if alert else page


def board_url(board: str, *variables: str, panel: str = "") -> str:
    """Return where a dashboard, or one of its panels in full, is: the same time, and the same values of `variables`.

    `generate.py` writes the panel's number in place of its title.
    """
    asked = ["${__url_time_range}", *(f"${{{name}:queryparam}}" for name in variables)]
    asked += [f"viewPanel={number_of(board, panel)}"] if panel else []
    return f"/d/rowferry-{board}?{'&'.join(asked)}"


def number_of(board: str, panel: str) -> str:
    """Return what stands for the number of the panel of this title until all panels are numbered."""
    return f"<{board}: {panel}>"


def explained_by(panel: str) -> dashboard.DashboardLink:
    """Return a link to the panel of the dashboard Migration that says more."""
    return link(panel, board_url("migration", *CHOSEN_OF_MIGRATION, panel=panel), keep=True)


def explained_by_workers(panel: str, *also: str) -> dashboard.DashboardLink:
    """Return a link to the panel of the dashboard Workers that says more; `also`: further variables to take along."""
    return link(panel, board_url("workers", *CHOSEN_OF_WORKERS, *also, panel=panel), keep=True)


def what_to_do(alert: str) -> dashboard.DashboardLink:
    """Return a link to what the runbook says about an alert."""
    return link("Runbook: what to do", runbook(alert))


def link(title: str, url: str, *, keep: bool = False, tooltip: str = "") -> dashboard.DashboardLink:
    """Return a link; `keep`: in the same tab."""
    made = dashboard.DashboardLink(title).type(model.DashboardLinkType.LINK).url(url).icon("external link")
    return made.tooltip(tooltip).target_blank(not keep)
