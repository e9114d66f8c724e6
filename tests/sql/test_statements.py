"""Every query has a name of its own, a description, and a place where it is used; nothing asks for another."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest
from psycopg.sql import SQL

from rowferry.db.statements import list_sql, own_queries, split_queries, statement
from rowferry_lab.queries import QUERIES as LAB_QUERIES
from rowferry_lab.queries import statement as lab_statement
from support.checkout import ROOT

PRODUCT = ("rowferry", "enqueue", "worker", "queues", "exporter", "cli", "lab")
pytestmark = pytest.mark.texts

FILES = [*list_sql("queries"), LAB_QUERIES]


def list_queries() -> list[tuple[str, str, str]]:
    """Return file, name and text of each query."""
    return [(path.stem, *query) for path in FILES for query in split_queries(path.read_text())]


@cache
def read_sources() -> list[str]:
    return [path.read_text() for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")]


def strings_of_product() -> Iterator[str]:
    """Every string in the code of the product, as a pattern: an f-string matches whatever it may become."""
    for node in (node for source in read_sources() for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.JoinedStr):
            parts = [re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+" for part in node.values]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)


def test_every_query_has_a_name_of_its_own_and_is_used_and_no_other_is_asked_for() -> None:
    names, text = [name for _, name, _ in list_queries()], "\n".join(read_sources())
    # Every name that stands right in a call of statement() or compose().
    asked = set(re.findall(r'\b(?:statement|printed_statement|compose|compose_other)\(\s*(?:\w+,\s*)?"(\w+)"', text))
    assert [name for name, times in Counter(names).items() if times > 1] == []
    used = re.compile("|".join({text for text in strings_of_product() if re.search(r"[a-z]_|^[a-z]+$", text)}))
    assert [name for name in names if not used.fullmatch(name)] == []
    assert len(asked) > len(names) / 2
    assert sorted(asked - set(names)) == []


def test_a_query_has_a_description_and_no_more_than_itself(subtests: pytest.Subtests) -> None:
    for file, name, query in list_queries():
        with subtests.test(f"{file}.sql: {name}"):
            first, *others = query.splitlines()
            assert re.fullmatch(r"-- [A-Z].+", first), "it has no description"
            assert any(not line.startswith("--") for line in others), "it is empty"
            assert not query.endswith(";")


def test_a_name_that_is_not_there_is_an_error() -> None:
    for find in (statement, lab_statement):
        with pytest.raises(KeyError, match="no_such_query"):
            find("no_such_query")


def test_rowferry_and_the_lab_each_have_their_own_queries() -> None:
    for name, _ in split_queries(LAB_QUERIES.read_text()):
        lab_statement(
            name, **dict.fromkeys(("id", "key", "title", "table", "schema", "columns", "role", "password"), SQL("x"))
        )
        with pytest.raises(KeyError):
            statement(name)


def test_descriptions_are_not_sent_to_the_server() -> None:
    assert all(not query.as_string().startswith("--") for query in own_queries().values())
