"""What is chosen above the panels, and how it is written into a query, a text or a link.

Source: Grafana's documentation, "Variable syntax"; interpolation of the data sources `grafana-postgresql-datasource`
and `prometheus`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

_USE = re.compile(r"\$(\w+)|\$\{(\w+)(?:\.\w+)?(?::([\w:]+))?\}|\[\[(\w+)(?::(\w+))?\]\]")
_SPECIAL = re.compile(r"[\\^$.*+?()[\]{}|/]")
_SPECIAL_IN_PROMQL = re.compile(r"[$^*{}\[\]'+?.()|]")


@dataclass(frozen=True)
class Choice:
    """The values of one variable that are chosen; `is_list`: several may be."""

    values: Sequence[str]
    is_list: bool = False
    all_value: str | None = None
    """What stands for all values, where all are chosen and the dashboard says so itself; it is never quoted."""
    shown: str = ""
    """What a reader sees above the panels."""


Writer = Callable[[Choice], str]


def sql_string(choice: Choice) -> str:
    """Return quoted texts, separated by commas."""
    return ",".join("'" + value.replace("'", "''") + "'" for value in choice.values)


def in_sql(choice: Choice) -> str:
    """Return what PostgreSQL's data source writes for a variable without a format."""
    return sql_string(choice) if choice.is_list else _one(choice).replace("'", "''")


def in_promql(choice: Choice) -> str:
    """Return what Prometheus' data source writes for a variable without a format."""
    if not choice.is_list:
        return _one(choice).replace("\\", "\\\\").replace('"', '\\"')
    escaped = [_SPECIAL_IN_PROMQL.sub(r"\\\\\g<0>", value.replace("\\", "\\" * 4)) for value in choice.values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def in_words(choice: Choice) -> str:
    """Return what a text panel or a title writes."""
    return _one(choice) if len(choice.values) < 2 else "{" + ",".join(choice.values) + "}"


def in_regex(choice: Choice) -> str:
    """Return a regular expression that matches the values."""
    escaped = [_SPECIAL.sub(r"\\\g<0>", value) for value in choice.values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


_FORMATS: Mapping[str, Writer] = {
    "sqlstring": sql_string,
    "singlequote": lambda c: ",".join("'" + value.replace("'", "\\'") + "'" for value in c.values),
    "doublequote": lambda c: ",".join('"' + value.replace('"', '\\"') + '"' for value in c.values),
    "csv": lambda c: ",".join(c.values),
    "raw": lambda c: ",".join(c.values),
    "pipe": lambda c: "|".join(c.values),
    "regex": in_regex,
    "json": lambda c: json.dumps(list(c.values) if c.is_list else _one(c)),
    "glob": in_words,
    "text": lambda c: c.shown or in_words(c),
    "percentencode": lambda c: quote(in_words(c), safe=""),
}


def write_in(text: str, choices: Mapping[str, Choice], plainly: Writer) -> str:
    """Return the text with each use of a known variable replaced; `plainly` writes those without a format."""

    def write(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[4]
        form = found[3] or found[5]
        if name not in choices:
            return found[0]
        choice = choices[name]
        if choice.all_value is not None and form != "text":
            return choice.all_value
        if form == "queryparam":
            return "&".join(f"var-{name}={quote(value, safe='')}" for value in choice.values)
        return (_FORMATS[form] if form else plainly)(choice)

    return _USE.sub(write, text)


def find_by_regex(texts: Sequence[str], pattern: str) -> list[str]:
    """Return each value that a variable's regex `/.../` finds in the texts, once; the first group where it has one."""
    if not pattern:
        return list(dict.fromkeys(texts))
    finder = re.compile(pattern.strip("/").replace("(?<", "(?P<"))
    found = [match[match.re.groups and 1] for text in texts for match in finder.finditer(text)]
    return list(dict.fromkeys(value for value in found if value))


def _one(choice: Choice) -> str:
    return choice.values[0] if choice.values else ""
