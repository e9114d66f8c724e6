"""The pages that are written from views and functions, and the comments in the database, are what sql/ says now."""

import psycopg
import pytest

from references.__main__ import write_pages
from rowferry.db.connection import connect
from rowferry.db.statements import list_sql, read_head
from support.docs.doc_pages import ROOT


def test_the_pages_are_what_their_sources_say_now(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this fails: `make references`."""
    monkeypatch.chdir(ROOT)
    with connect("test") as connection:
        written = write_pages(connection)
    assert {name: (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in written} == written


def test_the_database_says_the_same_to_psql(database: str) -> None:
    query = """
        select c.relname, obj_description(c.oid, 'pg_class') from pg_class as c
        where c.relkind = 'v' and c.relnamespace = 'rowferry'::regnamespace
        union all
        select p.proname, obj_description(p.oid, 'pg_proc') from pg_proc as p
        where p.pronamespace = 'rowferry'::regnamespace
    """
    with psycopg.connect(database) as connection:
        described = dict(connection.execute(query).fetchall())
    paths = [*list_sql("views"), *list_sql("functions")]
    assert described == {path.stem: "\n".join(read_head(path)) for path in paths}
