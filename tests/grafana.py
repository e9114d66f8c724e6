"""What Grafana does with the dashboards' files: it reads panels and variables, and fills macros in."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "dashboards"
BOARDS = ("migration", "workers")


@dataclass(frozen=True)
class Target:
    """One query of one panel."""

    board: str
    panel: str
    query: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.board}: {self.panel} {self.query['refId']}"

    @property
    def is_sql(self) -> bool:
        return "rawSql" in self.query

    @property
    def is_promql(self) -> bool:
        return "expr" in self.query


def read_board(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / "grafana" / "dashboards" / f"{name}.json").read_text(encoding="utf-8"))


def list_panels(name: str) -> list[dict[str, Any]]:
    """Return the panels of a dashboard, also those within closed rows; rows left out."""
    return [panel for panel in list_all(name) if panel["type"] != "row"]


def list_all(name: str) -> list[dict[str, Any]]:
    """Return the rows and panels of a dashboard, also those within closed rows."""
    return [each for panel in read_board(name)["panels"] for each in (panel, *panel.get("panels", []))]


def list_annotations(name: str) -> list[dict[str, Any]]:
    """Return the annotations of a dashboard."""
    return read_board(name)["annotations"]["list"]


def list_targets() -> Iterator[Target]:
    for board in BOARDS:
        for panel in list_panels(board):
            for query in panel.get("targets", []):
                yield Target(board, panel["title"], query)


def list_variables(board: str) -> dict[str, str]:
    """Return the queries of the template variables; not those that are data sources."""
    variables = read_board(board)["templating"]["list"]
    return {variable["name"]: variable["query"] for variable in variables if variable["type"] == "query"}


@dataclass(frozen=True)
class View:
    """What a viewer looks at: the time shown, and the values chosen above; of `queue`, at first the chain's first."""

    start: datetime
    end: datetime
    values: Mapping[str, list[str]]
    interval_seconds: int = 10

    def expand_sql(self, query: str) -> str:
        """Return the SQL that Grafana's PostgreSQL data source would send.

        Source: Grafana's documentation, "PostgreSQL query editor", macros; "Variable syntax", formats.
        """
        seconds = str(self.interval_seconds)
        query = query.replace("$__interval_ms", str(self.interval_seconds * 1000)).replace("$__interval", f"{seconds}s")
        for name, values in self.values.items():
            quoted = ",".join(f"'{value}'" for value in values)
            nothing = "" if name == "queue" else "''"  # several may be chosen of `queue`: none are an empty list
            query = query.replace(f"${{{name}:sqlstring}}", quoted or nothing)
        query = re.sub(r"\$__timeFilter\((.*?)\)", rf"\1 BETWEEN '{_iso(self.start)}' AND '{_iso(self.end)}'", query)
        query = query.replace("$__unixEpochFrom()", str(int(self.start.timestamp())))
        query = query.replace("$__unixEpochTo()", str(int(self.end.timestamp())))
        query = re.sub(r"\$__timeGroupAlias\((.*?), '?(\w+)'?(?:, 0)?\)", _group, query)
        assert "$" not in query, query
        return query

    def expand_promql(self, query: str) -> str:
        """Return the PromQL that Grafana's Prometheus data source would send."""
        query = query.replace("$__rate_interval", f"{4 * self.interval_seconds}s")
        for name, values in self.values.items():
            query = query.replace(
                f"${name}", f"({'|'.join(re.escape(value) for value in values)})".replace("\\", "\\\\")
            )
        assert "$" not in query, query
        return query


def _group(found: re.Match[str]) -> str:
    column, interval = found.groups()
    seconds = int(interval[:-1]) * {"s": 1, "m": 60, "h": 3600}[interval[-1]]
    return f'floor(extract(epoch from {column})/{seconds})*{seconds} AS "time"'


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
