"""Which tests are quick: the choice by what tests reach for what they cost, and the list that it is written to."""

import ast
from types import SimpleNamespace
from typing import Any

import pytest

from quick.choose import Recorded, choose
from support.checkout import ROOT
from support.running import quick
from support.running.quick import is_quick, read_list


def recorded(test: str, reached: int, cpu_seconds: float = 1.0, *sql: str) -> Recorded:
    return Recorded(test, cpu_seconds, reached, frozenset(sql))


def test_what_reaches_most_for_its_cost_is_chosen_first() -> None:
    wide = recorded("wide", 0b1111_1111, 4.0)
    cheap = recorded("cheap", 0b0000_1111, 1.0)
    other = recorded("other", 0b1111_0000, 1.0)
    assert choose([], [wide, cheap, other], 10.0)[:2] == ["cheap", "other"]
    assert choose([], [wide, cheap], 10.0) == ["cheap", "wide"]


FILE = "tests/test_a.py"


def item(test: str, *marks: str, parameters: str = "", kind: tuple[str, ...] = ("kind",), file: str = FILE) -> Any:
    marked = {mark: SimpleNamespace(args=kind if mark == "must" else ("group",)) for mark in marks}
    return SimpleNamespace(
        nodeid=f"{file}::{test}", get_closest_marker=marked.get, callspec=SimpleNamespace(id=parameters)
    )


def test_a_test_is_quick_if_it_must_or_is_cheap_or_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {
        "unread": {"tests/test_b.py"},
        "dear": {"tests/test_a.py": {"test_dear"}},
        "chosen": {"tests/test_a.py": {"test_b", "test_c"}},
    }
    monkeypatch.setattr(quick, "read_list", lambda: listed)
    assert is_quick(item("test_new", "fast"))
    assert not is_quick(item("test_dear", "fast"))
    assert not is_quick(item("test_new_with_a_server"))
    assert is_quick(item("test_b"))
    assert not is_quick(item("test_new", "fast", file="tests/test_b.py")), "its file is not read, so the rest has it"
    assert is_quick(item("test_c@group", "xdist_group"))
    assert is_quick(item("test_dear", "fast", "must"))
    assert not is_quick(item("test_b", "soak", "must"))
    assert is_quick(item("test_d", "must", kind=("kind", "*-stream"), parameters="moto-stream"))
    assert not is_quick(item("test_d", "must", kind=("kind", "*-stream"), parameters="moto-server"))


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
