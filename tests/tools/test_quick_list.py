"""The list of quick tests names tests that there are."""

import ast
from typing import Any

import pytest

from support.checkout import ROOT
from support.running.quick import read_list


@pytest.mark.texts
def test_the_list_is_of_tests_that_there_are() -> None:
    """Some may have gone since it was written; with more, it chooses by chance: `make quick-list` writes it anew."""
    listed = read_list()
    named = [
        (file, test.partition("[")[0].rpartition("::")[2]) for file, tests in named_tests(listed) for test in tests
    ]
    there = {file: find_functions(file) for file in {file for file, _ in named}}
    gone = [(file, test) for file, test in named if test not in there[file]]
    assert len(gone) <= len(named) / 20, gone


@pytest.mark.texts
def test_no_file_that_is_not_read_has_a_test_that_must_be_quick() -> None:
    unread = [ROOT / file for file in read_list()["unread"]]
    assert [path for path in unread if path.exists() and "mark.must(" in path.read_text(encoding="utf-8")] == []


def named_tests(listed: dict[str, Any]) -> list[tuple[str, set[str]]]:
    return [*listed["dear"].items(), *listed["chosen"].items()]


def find_functions(file: str) -> set[str]:
    """Return the names of a file's functions; of one that is gone, none."""
    path = ROOT / file
    tree = ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
