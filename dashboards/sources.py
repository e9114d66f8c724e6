"""Where panels get their data: the two data sources, which are variables of each dashboard, and their queries."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

QUERIES = Path(__file__).parent / "queries"
POSTGRES = DataSourceRef(type_val="grafana-postgresql-datasource", uid="${postgresql}")
PROMETHEUS = DataSourceRef(type_val="prometheus", uid="${prometheus}")
DASHBOARD = DataSourceRef(type_val="datasource", uid="-- Dashboard --")
"""What another panel of the same dashboard was answered: its query is not sent again."""
PROVISIONED = {"postgresql": "rowferry-postgres", "prometheus": "rowferry-prometheus"}
"""The variables, and the UIDs of grafana/provisioning/datasources that they have at first."""

Format = Literal["table", "time_series"]


def read_query(name: str) -> str:
    """Return the SQL in queries/`name`.sql."""
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8").strip()


@dataclass
class Query(Dataquery):
    """A query of a data source for which the SDK has no type."""

    document: dict[str, object]

    def to_json(self) -> dict[str, object]:
        """Return it as Grafana keeps it."""
        return self.document


@dataclass
class Sql(Builder[Dataquery]):
    """Builds the query in queries/`name`.sql."""

    name: str
    format: Format = "table"

    def build(self) -> Dataquery:
        """Read the file."""
        return Query(
            {
                "datasource": POSTGRES,
                "editorMode": "code",
                "format": self.format,
                "rawQuery": True,
                "rawSql": read_query(self.name),
                "refId": "A",
            }
        )


@dataclass
class AnswerOf(Builder[Dataquery]):
    """Builds the query for what the panel of this title was answered; `generate.py` writes its number."""

    title: str

    def build(self) -> Dataquery:
        """Name the panel."""
        return Query({"datasource": DASHBOARD, "panelId": self.title, "refId": "A"})


def over_time(expression: str, legend: str, ref_id: str = "A") -> prometheus.Dataquery:
    """Return a query of Prometheus over the time shown; `legend` names the curves by their labels in `{{ }}`."""
    query = prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(ref_id)
    return query.range().datasource(PROMETHEUS)


def present(expression: str, legend: str) -> prometheus.Dataquery:
    """Return a query of Prometheus for the present value, or for one for each `legend`."""
    query = prometheus.Dataquery().expr(expression).ref_id("A").instant().legend_format(legend)
    return query.format(PromQueryFormat.TIME_SERIES).datasource(PROMETHEUS)


def at_once(expression: str, ref_id: str = "A") -> prometheus.Dataquery:
    """Return a query of Prometheus for the present values, as a table with a column for each label."""
    query = prometheus.Dataquery().expr(expression).ref_id(ref_id).instant()
    return query.format(PromQueryFormat.TABLE).datasource(PROMETHEUS)
