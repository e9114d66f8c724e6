"""What Grafana's data sources write in place of macros and variables, of those that the dashboards use."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_SPECIAL = re.compile(r"[$^*{}\[\]'+?.()|]")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class View:
    """What a reader looks at: the time shown, and what is chosen above the panels."""

    start: datetime
    end: datetime
    values: Mapping[str, str | Sequence[str]]
    """A text is written as it is, such as the one value that may be chosen, or what stands for all values."""
    interval_seconds: int = 10
    """Between two points of a panel."""

    def expand_sql(self, query: str) -> str:
        """Return the SQL that PostgreSQL receives; raises ValueError for a macro that is not known here.

        Source: Grafana, "PostgreSQL query editor", macros.
        """
        for name, value in self.values.items():
            texts = [value] if isinstance(value, str) else value
            quoted = ",".join("'" + text.replace("'", "''") + "'" for text in texts)
            query = query.replace(f"${{{name}:sqlstring}}", quoted)
        start, end = (moment.astimezone(UTC).strftime("'%Y-%m-%dT%H:%M:%SZ'") for moment in (self.start, self.end))
        query = re.sub(r"\$__timeFilter\((.*?)\)", rf"\1 BETWEEN {start} AND {end}", query)
        query = re.sub(r"\$__timeGroupAlias\(([^,]+), *([^,]+), *[^,)]+\)", self._group, query)
        return self._write(query, {"timeFrom()": start, "timeTo()": end})

    def expand_promql(self, query: str) -> str:
        """Return the PromQL that Prometheus receives; raises ValueError for a macro that is not known here."""
        for name, value in self.values.items():
            query = re.sub(rf"\${name}\b", lambda _, value=value: _in_promql(value), query)
        return self._write(query, {"rate_interval": f"{4 * self.interval_seconds}s"})

    def _write(self, query: str, macros: Mapping[str, str]) -> str:
        start, end = int(self.start.timestamp()), int(self.end.timestamp())
        known = {
            **macros,
            "unixEpochFrom()": str(start),
            "unixEpochTo()": str(end),
            "interval_ms": str(self.interval_seconds * 1000),
            "interval": f"{self.interval_seconds}s",
            "range": f"{end - start}s",
        }
        for macro, text in known.items():
            query = query.replace(f"$__{macro}", text)
        if left := re.search(r"\$(?!1)[\w{:]+", query):  # $1 is what a regular expression has found
            raise ValueError(f"{left[0]} is not known: add it to dashboards/drawing/queries.py")
        return query

    def _group(self, found: re.Match[str]) -> str:
        seconds = self.interval_seconds if "$" in found[2] else read_seconds(found[2].strip("'"))
        return f'floor(extract(epoch from {found[1]})/{seconds})*{seconds} AS "time"'


def read_seconds(duration: str) -> int:
    """Return the length of a duration such as `10s` or `1h`; raises ValueError for another form."""
    found = re.fullmatch(r"(\d+)([smhd])", duration)
    if found is None:
        raise ValueError(f"Invalid duration {duration!r}: use a number and s, m, h or d")
    return int(found[1]) * _UNITS[found[2]]


def _in_promql(value: str | Sequence[str]) -> str:
    """Return a text as it is, and of several values a regular expression that matches each."""
    if isinstance(value, str):
        return value
    escaped = [_SPECIAL.sub(r"\\\\\g<0>", text.replace("\\", "\\" * 4)) for text in value]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"
