"""PostgreSQL and Prometheus, asked as Grafana's data sources ask them."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg

from drawing.frames import Frame, fill_gaps, frame_of_rows, frames_of_curves, table_of_samples
from drawing.macros import View, fill_of

SECONDS = 60
"""How long one query may take."""


class SourceError(Exception):
    """What a data source said in place of an answer; a panel shows it."""


@dataclass(frozen=True)
class Sources:
    """Where both data sources are."""

    dsn: str
    """Of a role as Grafana has: it may read the views only."""
    prometheus_port: int
    moment: psycopg.Connection | None = None
    """A transaction in which all is read, as of one moment; None: each query is of its own."""

    @contextmanager
    def of_one_moment(self) -> Iterator["Sources"]:
        """Yield the same sources, with a database that stands still: a board is read in less time than it is drawn."""
        with self._connect() as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                yield replace(self, moment=connection)

    def ask(self, query: Mapping[str, Any], view: View, interval_ms: int, tables: int = 1) -> list[Frame]:
        """Return the answer to a query of a panel, which has `tables` queries of samples; raises SourceError."""
        if "rawSql" in query:
            return self._ask_sql(query, view, interval_ms)
        step = max(interval_ms, view.scrape_seconds * 1000)
        expression = view.expand_promql(query["expr"], step)
        if query.get("instant"):
            samples = self.samples(expression, view.end)
            if query.get("format") == "table":
                return [table_of_samples(query, samples, f"Value #{query['refId']}" if tables > 1 else "Value")]
            return frames_of_curves(query, samples, step)
        return frames_of_curves(query, self.curves(expression, view, step), step)

    def rows(self, query: str) -> tuple[list[tuple[str, int]], list[tuple[Any, ...]]]:
        """Return the columns, each name and type's OID, and the rows; raises SourceError."""
        try:
            with nullcontext(self.moment) if self.moment else self._connect() as connection, connection.transaction():
                cursor = connection.execute(query.encode())
                return [(column.name, column.type_code) for column in cursor.description or ()], cursor.fetchall()
        except psycopg.Error as error:
            raise SourceError(str(error).partition("\n")[0]) from error

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=True, options=f"-c statement_timeout={SECONDS}s")

    def samples(self, expression: str, at: datetime) -> list[dict[str, Any]]:
        """Return the present value of each series, as a curve of one point."""
        found = self._get("query", query=expression, time=str(at.timestamp()))
        if found["resultType"] == "scalar":
            return [{"metric": {}, "values": [found["result"]]}]
        return [{"metric": sample["metric"], "values": [sample["value"]]} for sample in found["result"]]

    def curves(self, expression: str, view: View, step_ms: int) -> list[dict[str, Any]]:
        """Return the curves over the time shown, with points at multiples of the step."""
        start = int(view.start.timestamp() * 1000) // step_ms * step_ms / 1000
        end = view.end.timestamp()
        return self._get("query_range", query=expression, start=start, end=end, step=step_ms / 1000)["result"]

    def label_values(self, label: str, selector: str | None, view: View) -> list[str]:
        """Return the values that a label has in the time shown."""
        match = {"match[]": selector} if selector else {}
        start, end = view.start.timestamp(), view.end.timestamp()
        return self._get(f"label/{label}/values", start=start, end=end, **match)

    def _ask_sql(self, query: Mapping[str, Any], view: View, interval_ms: int) -> list[Frame]:
        columns, rows = self.rows(view.expand_sql(query["rawSql"], interval_ms))
        frame = frame_of_rows(query["refId"], columns, rows, query["format"])
        fill = fill_of(query["rawSql"], interval_ms)
        return [fill_gaps(frame, view.start, view.end, *fill) if fill and rows else frame]

    def _get(self, path: str, **parameters: Any) -> Any:
        """Return the `data` of Prometheus' answer; raises SourceError."""
        url = f"http://127.0.0.1:{self.prometheus_port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise SourceError(json.load(error)["error"]) from error


def texts_of(rows: Sequence[Sequence[Any]], columns: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
    """Return text and value of each row of a variable's query: `__text` and `__value`, or the first column twice."""
    names = [name for name, _ in columns]
    text, value = (names.index(name) if name in names else 0 for name in ("__text", "__value"))
    return [(str(row[text]), str(row[value])) for row in rows if row[value] is not None]
