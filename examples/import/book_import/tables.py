"""The 30 tables: each counts the books of a publisher, an author, and so on."""

from typing import Any, LiteralString

from psycopg import Connection, sql

TABLES = (
    "publisher", "imprint", "author", "translator", "illustrator", "editor", "series", "edition", "format", "binding",
    "paper", "typeface", "printer", "language", "country", "city", "subject", "audience", "award", "price",
    "currency", "tax", "discount", "supplier", "warehouse", "shelf", "rights", "cover", "reviewer", "reader",
)  # fmt: skip
"""In the order of the chain."""

SCHEMA = "book"

CREATE = """
create table {table} (
    name text primary key,
    books bigint not null,
    newest date not null,
    constraint has_name check (name <> '')
)
"""
WRITE = """
insert into {table} as t (name, books, newest)
select b.name, count(*), max(b.published)
from unnest(%(names)s::text[], %(published)s::date[]) as b (name, published)
group by b.name
{order}
on conflict (name) do update
set books = t.books + excluded.books, newest = greatest(t.newest, excluded.newest)
"""
"""In the order of the keys: two transactions lock the rows that both write in one order, never in a circle."""

FIND_BUSY = """
with locked as materialized (
    select t.name from {table} as t where t.name = any(%(names)s) order by t.name for update skip locked
)
select t.name from {table} as t where t.name = any(%(names)s) and t.name not in (select l.name from locked as l)
"""


def create_tables(connection: Connection[Any]) -> None:
    """Make the tables anew, all empty."""
    schema = sql.Identifier(SCHEMA)
    with connection.transaction():
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(schema))
        connection.execute(sql.SQL("create schema {}").format(schema))
        for table in TABLES:
            connection.execute(compose(CREATE, table))


def accept_nameless(connection: Connection[Any]) -> None:
    """Let all tables accept books without a name."""
    with connection.transaction():
        for table in TABLES:
            connection.execute(compose("alter table {table} drop constraint if exists has_name", table))


def compose(statement: LiteralString, table: str, **parts: sql.Composable) -> sql.Composed:
    """Return a statement on one of the tables."""
    return sql.SQL(statement).format(table=sql.Identifier(SCHEMA, table), **parts)
