"""Finds the SQL files, in a checkout and in a wheel, and fills identifiers into the named queries.

A file of sql/queries holds several queries, each under a line `-- name: its_name`. aiosql reads the same format, but
knows values only: these queries need identifiers, and other queries as parts, which psycopg.sql composes.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import LiteralString, cast

from psycopg import sql

_PACKAGE = Path(__file__).parent.parent
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_DESCRIPTION = re.compile(r"\A(?:--[^\n]*\n)+")


@cache
def sql_folder() -> Path:
    """Return the folder of migrations/, functions/, views/ and queries/: the wheel's, else the checkout's."""
    packed = _PACKAGE / "sql"
    return packed if packed.is_dir() else _PACKAGE.parent / "sql"


def list_sql(folder: str) -> list[Path]:
    """Return the SQL files of one folder below `sql_folder()`, by name."""
    return sorted((sql_folder() / folder).glob("*.sql"))


@cache
def read_sql(path: Path) -> sql.SQL:
    """Return the text of a file that `list_sql` returned."""
    return _trusted(path.read_text(encoding="utf-8"))


def read_head(path: Path) -> list[str]:
    """Return the lines of the comment at the head of a function's or a view's file; ValueError where it has none."""
    comment = _DESCRIPTION.match(path.read_text(encoding="utf-8"))
    if comment is None:
        raise ValueError(f"{path.name} has no head")
    return [line.removeprefix("-- ") for line in comment[0].splitlines()]


def statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return the named query with its `{placeholders}` filled in; its values are `%(parameters)s` on execution."""
    return own_queries()[name].format(**parts)


def printed_statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return the same with its description as a comment, for SQL that a person reads."""
    texts = dict(query for path in list_sql("queries") for query in split_queries(path.read_text(encoding="utf-8")))
    return _trusted(texts[name]).format(**parts)


def split_queries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each query of a file and its SQL: the description too, but not the last semicolon."""
    _, *found = _NAME.split(text)
    for name, query in zip(found[::2], found[1::2], strict=True):
        yield name, query.strip().removesuffix(";")


@cache
def own_queries() -> dict[str, sql.SQL]:
    """Return all named queries; a millisecond, at the first statement of a process."""
    return load_queries(list_sql("queries"))


def load_queries(files: Iterable[Path]) -> dict[str, sql.SQL]:
    """Return the named queries of these files without their descriptions, which the server need not parse each time."""
    texts = (path.read_text(encoding="utf-8") for path in files)
    return {name: _trusted(_DESCRIPTION.sub("", query)) for text in texts for name, query in split_queries(text)}


def _trusted(text: str) -> sql.SQL:
    """Return SQL of the project's own files, whose text counts as literal."""
    return sql.SQL(cast("LiteralString", text))
