"""The page that tells the life of an entry names functions that exist."""

import ast
import re
from pathlib import Path

import pytest

from support.docs.doc_pages import ROOT

ROW = re.compile(r"\| `([\w/.]+\.py)` \| [^|]+ \| (`[^|]+`) \|")
BEGIN, END = "## One entry, function by function", "## Threads and the event loop"

pytestmark = pytest.mark.texts


def read_tables() -> list[list[tuple[Path, str]]]:
    """Return the functions of each table of the section, with their files."""
    section = (ROOT / "docs" / "internals" / "architecture.md").read_text().split(BEGIN)[-1].split(END)[0]
    return [
        [(find_file(path), name) for path, names in ROW.findall(table) for name in re.findall(r"`([\w.]+)`", names)]
        for table in section.split("| functions |")[1:]
    ]


def find_file(path: str) -> Path:
    return ROOT / (path if path.startswith(("queues/", "rowferry/")) else f"worker/rowferry_worker/{path}")


def list_functions(path: Path) -> set[str]:
    """Return the functions of a module, and the methods of its classes behind their names."""
    found = set[str]()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            found.update(f"{node.name}.{each.name}" for each in methods)
    return found


def test_each_function_of_an_entrys_life_exists() -> None:
    tables = read_tables()
    assert len(tables) == 2
    for path, name in [each for table in tables for each in table]:
        assert name in list_functions(path), f"{path} has no {name}"
