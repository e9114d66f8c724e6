"""What docs/forms.md shows of folders and of computed keys is what a check and a worker make of it."""

from pathlib import Path

import psycopg
import pytest

from support.docs.doc_pages import ROOT, read_table
from support.postgres.servers import DatabaseServers

FORMS = ROOT / "docs" / "forms.md"
ROW = "select 4711 as id, 'docs/a.pdf' as path"


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
