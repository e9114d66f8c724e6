"""SQL in the docs: statements do something, expressions yield what is shown, and pages say what sql/ says now."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from references.__main__ import write_pages
from rowferry.db.connection import connect
from rowferry.db.statements import list_sql, read_head
from support.docs.doc_pages import PAGES, ROOT, read_blocks, read_table
from support.docs.statements import split_statements
from support.entries.migration import Migration
from support.postgres.ordinary import administrator
from support.postgres.servers import DatabaseServers

ARCHITECTURE = ROOT / "docs" / "internals" / "architecture.md"
COOK_BOOK = ROOT / "docs" / "sql.md"
"""Has tests of its own, with a queue in the state that each recipe is for."""


def test_the_outcomes_and_verdicts_of_the_docs_are_those_of_the_schema(database: str) -> None:
    with psycopg.connect(database) as connection:
        query = "select conname, pg_get_constraintdef(oid) from pg_constraint where conname like '%\\_check'"
        checks = dict(connection.execute(query).fetchall())
    rows = {row[0].strip("*"): row[1] for row in read_table(ARCHITECTURE, "The words")}
    outcomes = set(re.findall(r"`(\w+)`", rows["outcome"]))
    assert outcomes == set(re.findall(r"'(\w+)'", checks["entry_failure_outcome_check"])) | {"migrated", "kept"}
    verdicts = set(re.findall(r"'(\w+)'", checks["batch_attempt_verdict_check"]))
    assert set(re.findall(r"`(\w+)`", rows["verdict"])) == verdicts
    told = {row[0].strip("`*") for row in read_table(ARCHITECTURE, "Attempts and the ledger")}
    assert told == verdicts | {"none"}


@pytest.fixture
def busy_queue(migration: Migration) -> Migration:
    """A migration with batches that are INIT, DONE and ERROR, failures by entry, a live worker and one that died."""
    migration.fill(6).add_row(7, "image/lost.png").add(8, "other.png")
    migration.production.put("avatar/other.png", b"something else")
    migration.migrate(batch_size=3)
    migration.fill(3, start=9).enqueue(batch_size=3)
    migration.execute("select rowferry.heartbeat('host:1:a', 'host', 1, '0.1.0', 2, 64, '{migrate}')")
    migration.execute(
        "select rowferry.begin_attempt(id, requeues, 'host:1:a') from rowferry.batch_queue where status = 'INIT'"
    )
    assert migration.statuses() == {"INIT", "DONE", "ERROR"}
    return migration


@pytest.fixture
def roles(database: str) -> Iterator[list[str]]:
    """The roles that the docs grant something to; they belong to the whole server, so they are dropped again."""
    granted = {name for block in read_blocks("sql") for name in re.findall(r"\bto \"?(\w+)\"?;", block.text)}
    with administrator(database) as connection:
        for role in granted:
            connection.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
        yield sorted(granted)
        for role in granted:
            connection.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(role)))


@pytest.mark.usefixtures("roles")
def test_every_statement_does_something(busy_queue: Migration, subtests: pytest.Subtests) -> None:
    """Each query finds a row, and each change has one to change, in a queue that has some of everything.

    Each block begins with that queue, since what it changes is rolled back.
    """
    blocks = read_blocks("sql", pages=[page for page in PAGES if page != COOK_BOOK])
    assert len(blocks) > 10, "a test without a subject cannot fail"
    with psycopg.connect(busy_queue.dsn) as connection:
        for block in blocks:
            with subtests.test(str(block)):
                for statement in split_statements(block.text):
                    cursor = connection.execute(statement.encode())
                    changes_rows = statement.lower().lstrip().startswith(("select", "insert", "update", "delete"))
                    assert not changes_rows or cursor.rowcount > 0, statement
            connection.rollback()


def test_the_grants_in_the_docs_are_among_those_that_rowferry_prints(migration: Migration) -> None:
    (shown,) = read_blocks("sql", pages=[ROOT / "docs" / "permissions.md"])
    migration.write_plan()
    printed = migration.run("init", "--grants", "app_worker", "--for", "worker").stdout
    assert set(split_statements(shown.text)) <= set(split_statements(printed))


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


FORMS = ROOT / "docs" / "forms.md"
ROW = "select 4711 as id, 'docs/a.pdf' as path"


def test_each_expression_yields_the_key_that_the_page_shows(
    distribution_postgres: Path, database_servers: DatabaseServers, subtests: pytest.Subtests
) -> None:
    rows = [row for row in read_table(FORMS, "Computed and several objects") if len(row) == 3]
    expressions = [[cell.strip().strip("`").replace("\\|", "|") for cell in row[1:]] for row in rows]
    assert len(expressions) > 10
    with database_servers.fresh_database(distribution_postgres) as dsn, psycopg.connect(dsn) as connection:
        connection.execute("create extension pgcrypto")
        for expression, expected in expressions:
            with subtests.test(expression):
                (found,) = connection.execute(f"select {expression} from ({ROW}) as e".encode()).fetchone() or ("",)
                assert found.startswith(expected.removesuffix("…"))
                assert expected.endswith("…") or found == expected
