"""Statements in the docs do something, and outcomes, verdicts and grants are those of the schema."""

import re
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from support.docs.doc_pages import PAGES, ROOT, read_blocks, read_table
from support.docs.statements import split_statements
from support.entries.migration import Migration
from support.postgres.ordinary import administrator

ARCHITECTURE = ROOT / "docs" / "internals" / "architecture.md"
PERMISSIONS = ROOT / "docs" / "permissions.md"
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
    migration.fill(6)
    migration.add_row(7, "image/lost.png")
    migration.add(8, "other.png")
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


def test_requeuing_in_sql_resets_the_rest(busy_queue: Migration) -> None:
    (first, *_) = [block for block in read_blocks("sql", pages=[ROOT / "README.md"]) if "'INIT'" in block.text]
    busy_queue.execute(first.text)
    requeued = [batch for batch in busy_queue.batches() if batch["requeues"]]
    assert requeued
    assert {(batch["status"], batch["attempts"], batch["error"]) for batch in requeued} == {("INIT", 0, None)}


def test_the_grants_in_the_docs_are_among_those_that_rowferry_prints(migration: Migration) -> None:
    (shown,) = read_blocks("sql", pages=[PERMISSIONS])
    migration.write_plan()
    printed = migration.run("init", "--grants", "app_worker", "--for", "worker").stdout
    assert set(split_statements(shown.text)) <= set(split_statements(printed))
