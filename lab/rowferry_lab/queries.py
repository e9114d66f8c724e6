"""The SQL of the lab: the named queries of queries.sql, which lies beside this file."""

from functools import cache
from pathlib import Path

from psycopg import sql

from rowferry.db.statements import load_queries

QUERIES = Path(__file__).with_name("queries.sql")


def statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return the named query with its `{placeholders}` filled in; its values are `%(parameters)s` on execution."""
    return _load()[name].format(**parts)


@cache
def _load() -> dict[str, sql.SQL]:
    return load_queries([QUERIES])
