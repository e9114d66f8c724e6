"""Compares the tables with the items that were imported."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import Connection
from psycopg.rows import tuple_row

from book_import.tables import TABLES, compose

READ = "select name, books from {table}"


def find_differences(
    connection: Connection[Any],
    items: Iterable[dict[str, Any]],
    tables: Sequence[str] = TABLES,
    *,
    stops: bool = True,
) -> list[str]:
    """Return a line for each row that does not count the items of its name exactly once.

    `stops`: an item without a name for one table is expected in those before it alone, as that table refuses it.
    """
    expected = {table: Counter[str]() for table in tables}
    for item in items:
        for table in tables:
            if stops and not item[table]:
                break
            expected[table][item[table]] += 1
    return [line for table in tables for line in _compare(connection, table, expected[table])]


def _compare(connection: Connection[Any], table: str, expected: Counter[str]) -> list[str]:
    cursor = connection.cursor(row_factory=tuple_row)
    found = dict(cursor.execute(compose(READ, table)).fetchall())
    return [
        f"book.{table}, {name!r}: {found.get(name, 0)} books, and {expected[name]} items"
        for name in sorted(found.keys() | expected.keys())
        if found.get(name, 0) != expected[name]
    ]
