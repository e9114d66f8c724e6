"""What docs/forms.md shows of folders and of computed keys is what a check and a worker make of it."""

import re
from pathlib import Path

import psycopg
import pytest

from rowferry.plan_file import parse_plan
from support.docs.doc_pages import ROOT, is_in_section, read_blocks, read_plan_document, read_table
from support.entries.checks import problems
from support.entries.migration import Migration
from support.postgres.servers import DatabaseServers
from support.queue.queue_runs import migrate

FORMS = ROOT / "docs" / "forms.md"
ROW = "select 4711 as id, 'docs/a.pdf' as path"


def test_a_row_moves_with_the_objects_that_the_page_shows(migration: Migration) -> None:
    (block,) = [one for one in read_blocks("toml", pages=[FORMS]) if is_in_section(one, "Folders")]
    document = read_plan_document(block)
    parse_plan(document, str(block))
    (row,) = read_table(FORMS, "Folders")
    (before,), keys, (after,) = (re.findall(r"`([^`]+)`", cell) for cell in row)
    assert len(keys) > 1
    migration.execute("create table public.runs (run_uuid text primary key, artifact_uri text)")
    migration.execute("insert into public.runs values ('9f', %s)", (before,))
    migration.plan["entries"] = document["entries"]
    for key in keys:
        migration.legacy.put(key, key.encode())
    migrate(migration)
    assert [found["artifact_uri"] for found in migration.execute("select artifact_uri from public.runs")] == [after]
    assert {key: migration.production.read(key) for key in keys} == {key: key.encode() for key in keys}


def read_expressions() -> list[tuple[str, str]]:
    """Return the expressions of the page, each with the key of its example."""
    rows = [row for row in read_table(FORMS, "Computed and several objects") if len(row) == 3]
    cells = [[cell.strip().strip("`").replace("\\|", "|") for cell in row[1:]] for row in rows]
    return [(expression, key) for expression, key in cells]


def test_each_expression_yields_the_key_that_the_page_shows(
    distribution_postgres: Path, database_servers: DatabaseServers, subtests: pytest.Subtests
) -> None:
    expressions = read_expressions()
    assert len(expressions) > 10
    with database_servers.fresh_database(distribution_postgres) as dsn, psycopg.connect(dsn) as connection:
        connection.execute("create extension pgcrypto")
        for expression, expected in expressions:
            with subtests.test(expression):
                (found,) = connection.execute(f"select {expression} from ({ROW}) as e".encode()).fetchone() or ("",)
                assert found.startswith(expected.removesuffix("…"))
                assert expected.endswith("…") or found == expected


def test_a_check_takes_each_expression(migration: Migration, subtests: pytest.Subtests) -> None:
    migration.execute("create table public.files (id bigint primary key, path text, store text)")
    migration.execute("insert into public.files values (4711, 'docs/a.pdf', 'old')")
    entries = {"table": "public.files", "id": "id", "moved": {"store": ["old", "new"]}, "legacy_object": ""}
    for expression, _ in read_expressions():
        if "digest(" in expression:  # of an extension, which this server lacks
            continue
        with subtests.test(expression):
            (row,) = migration.execute(f"select {expression} as key from public.files")
            migration.legacy.put(row["key"], b"body")
            migration.plan["entries"] = [{**entries, "production_object": "new/", "objects": expression}]
            assert problems(migration) == []
