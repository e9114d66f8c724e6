"""Where panels and template variables get their data: the two data sources, their queries, and the variables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grafana_foundation_sdk.builders import dashboard, prometheus
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

QUERIES = Path(__file__).parent / "queries"
POSTGRES = DataSourceRef(type_val="grafana-postgresql-datasource", uid="rowferry-postgres")
PROMETHEUS = DataSourceRef(type_val="prometheus", uid="rowferry-prometheus")

Format = Literal["table", "time_series"]


def read_query(name: str) -> str:
    """Return the SQL in queries/`name`.sql."""
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8").strip()


@dataclass
class SqlQuery(Dataquery):
    """A query of the PostgreSQL data source, for which the SDK has no type."""

    raw_sql: str
    format: Format

    def to_json(self) -> dict[str, object]:
        """Return it as Grafana keeps it."""
        return {
            "datasource": POSTGRES,
            "editorMode": "code",
            "format": self.format,
            "rawQuery": True,
            "rawSql": self.raw_sql,
            "refId": "A",
        }


@dataclass
class Sql(Builder[Dataquery]):
    """Builds the query in queries/`name`.sql."""

    name: str
    format: Format = "table"

    def build(self) -> Dataquery:
        """Read the file."""
        return SqlQuery(read_query(self.name), self.format)


def over_time(expression: str, legend: str, ref_id: str) -> prometheus.Dataquery:
    """Return a query of Prometheus over the time shown; `legend` names the curves by their labels in `{{ }}`."""
    query = prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(ref_id)
    return query.range().datasource(PROMETHEUS)


def at_once(expression: str, legend: str = "") -> prometheus.Dataquery:
    """Return a query of Prometheus for the present value, or for several, with a `legend` for each."""
    query = prometheus.Dataquery().expr(expression).ref_id("A").instant().legend_format(legend)
    return query.format(PromQueryFormat.TIME_SERIES).datasource(PROMETHEUS)


Choice = Literal["one", "first", "all"]
"""What may be chosen of a variable: one value; several, at first the first one; or several, at first all."""


def sql_variable(name: str, label: str, query: str, choice: Choice = "one") -> dashboard.QueryVariable:
    """Return a template variable with the values that queries/`query`.sql returns."""
    return _variable(name, label, read_query(query), POSTGRES, choice)


def prom_variable(
    name: str, label: str, query: str, choice: Choice = "all", regex: str = ""
) -> dashboard.QueryVariable:
    """Return a template variable with the values of a label, or of what `regex` finds in the results of a query."""
    return _variable(name, label, query, PROMETHEUS, choice).regex(regex)


def _variable(name: str, label: str, query: str, source: DataSourceRef, choice: Choice) -> dashboard.QueryVariable:
    """Return a variable; its values stay in the order in which they come, and without "All" the first is chosen."""
    is_all = choice == "all"
    variable = dashboard.QueryVariable(name).label(label).query(query).datasource(source)
    variable = variable.multi(choice != "one").include_all(is_all).sort(model.VariableSort.DISABLED)
    variable = variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return variable.current(model.VariableOption(text="All", value="$__all", selected=True)) if is_all else variable
