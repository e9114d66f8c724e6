"""No queue's name stands outside its own package: a queue of somebody else is treated as those of rowferry are."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rowferry.queues import find_queue, list_queues
from support.docs.doc_pages import ROOT

TREES = ("rowferry", "enqueue", "worker", "cli", "exporter", "lab", "queues")
"""Tests, bench and docs name queues to try them, dashboards to have something to show."""

COMMANDS = {"command", "connect", "_run"}
"""Functions whose first argument is the name of a command of `rowferry`, which some queues share."""

OTHER_WORDS = {
    ("worker/rowferry_worker/multipart/records.py", "parts"): "the column of rowferry.upload",
}
"""Where a word means something else than the queue of that name, and what."""


def find_names(source: str, names: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each literal that is the name of a queue, but not that of a command."""
    tree = ast.parse(source)
    commands: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            commands |= {node.args[0]} if called in COMMANDS else set()
        if isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == ["SECTIONS"]:
            commands |= {key for each in ast.walk(node) if isinstance(each, ast.Dict) for key in each.keys if key}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in names and node not in commands:
            yield node.lineno, str(node.value)


def find_names_in_sql(source: str, names: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each literal that is the name of a queue; comments do not count."""
    for number, line in enumerate(source.splitlines(), 1):
        for found in re.findall(r"'([^']*)'", line.partition("--")[0]):
            if found in names:
                yield number, found


def list_own_queues() -> dict[str, Path]:
    """Return the folder of each queue that comes with rowferry."""
    own: dict[str, Path] = {}
    for name in list_queues():
        module = find_queue(name).perform.partition(":")[0]
        if module.startswith("rowferry_queues."):
            own[name] = ROOT / "queues" / "rowferry_queues" / module.split(".")[1]
    return own


def test_no_name_of_a_queue_stands_outside_its_package() -> None:
    own = list_own_queues()
    assert {"migrate", "verify", "revert"} <= own.keys()
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for tree in TREES
        for path in sorted((ROOT / tree).rglob("*.py"))
        for line, name in find_names(path.read_text(), set(own))
        if own[name] not in path.parents and (str(path.relative_to(ROOT)), name) not in OTHER_WORDS
    ]
    found += [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for tree in ("sql", "lab", "queues")
        for path in sorted((ROOT / tree).rglob("*.sql"))
        for line, name in find_names_in_sql(path.read_text(), set(own))
        if "migrations" not in path.parts and own[name] not in path.parents
    ]
    assert found == []


def test_each_other_word_is_still_there() -> None:
    for path, name in OTHER_WORDS:
        assert name in [found for _, found in find_names((ROOT / path).read_text(), {name})], path
