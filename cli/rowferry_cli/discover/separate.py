"""Finds a condition that tells rows whose objects exist from the others: another column, or how the text is written."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from rowferry.db.connection import identifiers, literal
from rowferry_cli.discover.evidence.catalogue import Catalogue, Column, UserTable
from rowferry_cli.discover.evidence.telling_columns import find_state_columns
from rowferry_cli.discover.evidence.written_sql import quote_name, quote_text

LEAST_ROWS = 3
"""Of either kind: fewer are chance."""
MANY_VALUES = 12
"""Where rows without objects have more values, another one tells nothing."""
SHOWN = 80
"""Characters of another column's value that are read."""
_UNTOLD = ("json", "bytea", "tsvector", "vector", "xml", "point", "timestamp", "date", "uuid")
"""Types of columns whose values are not compared, but for being null."""

Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Sampled rows: the texts, and the values of the other columns, of those whose objects exist and of the others."""

    good: Sequence[tuple[str, Values]]
    bad: Sequence[tuple[str, Values]]

    @property
    def are_enough(self) -> bool:
        """Whether there are enough of both to tell them apart."""
        return min(len(self.good), len(self.bad)) >= LEAST_ROWS


def sample_beside(
    catalogue: Catalogue, table: UserTable, value: sql.Composable, most: int
) -> Iterator[tuple[Any, Values]]:
    """Yield what an expression yields for some rows, with the beginnings of their columns' values."""
    columns = list(table.columns)
    others = [sql.SQL("left(e.{}::text, {})").format(identifiers(name), sql.Literal(SHOWN)) for name in columns]
    whole = sql.SQL("json_build_array(({}), json_build_array({}))::text").format(value, sql.SQL(", ").join(others))
    rows = catalogue.sample(table, whole, sql.SQL("({}) is not null").format(value), most, named=table.plan_name)
    for row in rows:
        found, values = json.loads(row.value)
        yield found, dict(zip(columns, values, strict=True))


def find_condition(table: UserTable, key: str, kinds: Kinds, *, is_text: bool) -> str | None:
    """Return SQL that all good rows meet and no bad one does; None where nothing simple does.

    `is_text`: whether the key column's own text may tell.
    """
    if not kinds.are_enough:
        return None
    states = find_state_columns(table)
    named = sorted(table.columns.values(), key=lambda column: column.name not in states)
    others = [column for column in named if column.name not in table.id]
    conditions = [one for column in others if column.name != key or not is_text for one in _suggest(column, kinds)]
    if conditions:
        return conditions[0]
    return next(_suggest_patterns(quote_name(key), kinds), None) if is_text else None


def _suggest(column: Column, kinds: Kinds) -> Iterator[str]:
    good, bad = ({values[column.name] for _, values in rows} for rows in (kinds.good, kinds.bad))
    if good & bad:
        return
    name = quote_name(column.name)
    if good == {None} or bad == {None}:
        yield f"{name} is null" if None in good else f"{name} is not null"
    if column.kind in {"json", "array"} or column.type.startswith(_UNTOLD):
        return
    if column.type == "boolean" and None not in good:
        yield name if good == {"true"} else f"not {name}"
    elif len(good) == 1 and len(bad) <= MANY_VALUES and None not in good:
        yield f"{name} = {_write(column, *good)}"
    elif len(bad) == 1 and None not in good | bad:
        yield f"{name} <> {_write(column, *bad)}"
    elif None not in good and len(good) <= 4:
        listed = ", ".join(sorted(_write(column, value) for value in good))
        yield f"{name} in ({listed})"


def _write(column: Column, value: str | None) -> str:
    is_number = column.type in {"smallint", "integer", "bigint"}
    return str(value) if is_number else quote_text(str(value))


def _suggest_patterns(name: str, kinds: Kinds) -> Iterator[str]:
    """Yield conditions over the text itself."""
    good, bad = [text for text, _ in kinds.good], [text for text, _ in kinds.bad]
    for begin in ("data:", "http"):
        if all(text.startswith(begin) for text in bad) and not any(text.startswith(begin) for text in good):
            yield f"{name} not like '{begin}%'"
    if all("://" in text for text in bad) and not any("://" in text for text in good):
        yield f"{name} not like '%://%'"
    if max(map(len, good)) <= 1024 < min(map(len, bad)):
        yield f"length({name}) <= 1024"
    if all("/" in text for text in good) and not any("/" in text for text in bad):
        yield f"{name} like '%/%'"


def find_document_condition(key: str, texts: Sequence[str]) -> str | None:
    """Return a condition that the texts of a column that are documents meet, if others are none; None: all are."""
    name = quote_name(key)
    good = [text for text in texts if _is_document(text)]
    bad = [text for text in texts if not _is_document(text)]
    if not good or not bad:
        return None
    for length in (1, 2):
        begins = sorted({text[:length] for text in good})
        if len(begins) <= 2 and not any(text.startswith(tuple(begins)) for text in bad):
            conditions = [f"{name} like {quote_text(begin + '%')}" for begin in begins]
            return conditions[0] if len(conditions) == 1 else f"({' or '.join(conditions)})"
    return None


def _is_document(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list | dict)
    except (ValueError, RecursionError):
        return False


def compose_text(key: str) -> sql.Composable:
    """Return SQL that yields the text of a column."""
    return sql.SQL("e.{}::text").format(identifiers(key))


def compose_objects(objects: str) -> sql.Composable:
    """Return SQL that yields the keys that an expression of a plan names."""
    return sql.SQL("to_json(({}\n))").format(literal(objects))
