"""Names and paths in docstrings lead to what is there, as those in the docs do."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.docs.doc_pages import ROOT

pytestmark = pytest.mark.texts

PRODUCT = ("rowferry", "enqueue", "worker", "exporter", "cli", "queues", "lab")
TREES = (*PRODUCT, "sql", "tests", "tools", "docs", "dashboards", "bench", "deploy", "examples")
NAME = re.compile(r"`([A-Za-z_]\w+(?:\.\w+)*)(?:\(\))?`")
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(TREES)})/[\w./-]*\w")
FOREIGN = {"Date", "default_pool_size", "on_", "psycopg.sql", "text_0"}
"""A header, a setting of PgBouncer, beginnings of names, a module of psycopg, and what a number makes of a name."""
FILE_NAME = re.compile(r"(?<![\w./-])[a-z]\w*\.(?:py|sql)\b")


def list_docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield docstrings of modules, classes, functions and fields: each text that is a statement of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


@cache
def read_modules() -> dict[Path, ast.Module]:
    paths = [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def list_words(tree: ast.AST) -> Iterator[str]:
    """Yield every word of code: names, and what other texts than docstrings say."""
    told = {id(docstring) for docstring in list_docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield from re.findall(r"\w+", node.value)
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            yield from re.findall(r"\w+", str(getattr(node, field, "")))


def test_every_name_in_a_docstring_is_one_in_the_code(subtests: pytest.Subtests) -> None:
    words = {word for tree in read_modules().values() for word in list_words(tree)}
    for path in [*(ROOT / "sql").rglob("*.sql"), *(ROOT / "cli").rglob("*.toml"), ROOT / "pyproject.toml"]:
        words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    looked_at = 0
    for path, tree in read_modules().items():
        for docstring in list_docstrings(tree):
            for name in set(NAME.findall(str(docstring.value))) - FOREIGN:
                looked_at += 1
                with subtests.test(f"{path.relative_to(ROOT)}:{docstring.lineno}"):
                    assert set(name.split(".")) <= words, f"there is no {name}"
    assert looked_at > 500


def test_every_path_in_a_docstring_exists(subtests: pytest.Subtests) -> None:
    files = {path.name for tree in TREES for path in (ROOT / tree).rglob("*.*")}
    for path, tree in read_modules().items():
        for docstring in list_docstrings(tree):
            text = str(docstring.value)
            place = f"{path.relative_to(ROOT)}:{docstring.lineno}"
            for found in PATH.findall(text):
                with subtests.test(place):
                    known = [ROOT / found, *(ROOT / tree / found for tree in PRODUCT)]
                    assert any(one.exists() for one in known), f"{found} does not exist"
            for found in set(FILE_NAME.findall(text)) - FOREIGN:
                with subtests.test(place):
                    assert found in files, f"there is no file {found}"
