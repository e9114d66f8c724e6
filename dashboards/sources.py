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


def at_once(expression: str) -> prometheus.Dataquery:
    """Return a query of Prometheus for the present value."""
    query = prometheus.Dataquery().expr(expression).ref_id("A").instant()
    return query.format(PromQueryFormat.TIME_SERIES).datasource(PROMETHEUS)


def sql_variable(name: str, label: str, query: str, *, many: bool = False) -> dashboard.QueryVariable:
    """Return a template variable with the values that queries/`query`.sql returns; `many`: several, or all."""
    return _variable(name, label, read_query(query), POSTGRES, many=many)


def prom_variable(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """Return a template variable with the values of a label: several, or all."""
    return _variable(name, label, query, PROMETHEUS, many=True)


def _variable(name: str, label: str, query: str, source: DataSourceRef, *, many: bool) -> dashboard.QueryVariable:
    variable = dashboard.QueryVariable(name).label(label).query(query).datasource(source).multi(many).include_all(many)
    variable = variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return variable.current(model.VariableOption(text="All", value="$__all", selected=True)) if many else variable
