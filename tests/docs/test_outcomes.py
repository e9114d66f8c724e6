"""Outcomes, verdicts, queues, events and functions: each place that spells them says all that there are."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from rowferry.batch import Outcome
from rowferry.queue_spec import SOURCE_WORDS, SourceName
from rowferry.queues import find_queue, list_queues
from rowferry_worker.batch.sources import name_source
from support.docs.doc_pages import ROOT

pytestmark = pytest.mark.texts

TABLES = (ROOT / "sql" / "migrations" / "0001_initial.sql").read_text(encoding="utf-8")
SPELLED_IN = {
    "sql": ("*.sql",),
    "dashboards": ("*.py", "*.sql", "*.json"),
    "cli": ("*.py", "*.css", "*.sql"),
    "rowferry": ("batch.py", "progress.py"),
    "exporter": ("*.py",),
    "docs": ("internals/architecture.md", "commands.md", "own-queue.md", "sql.md", "views.md"),
}
"""Where a file that names most outcomes must name all: they are columns that add up, colours, or the words for them."""


def read_constraint(name: str) -> set[str]:
    """Return the words of one list in a check constraint."""
    found = re.search(rf"constraint {name} check \(\s*\w+ in \(([^)]*)\)", TABLES)
    assert found is not None
    return set(re.findall(r"'(\w+)'", found[1]))


def read_balance() -> set[str]:
    """Return the columns whose sum the entries of a batch that is done must be."""
    found = re.search(r"or entry_count = ((?:\w+ \+ )+\w+)", TABLES)
    assert found is not None
    return set(found[1].split(" + "))


def list_files() -> Iterator[Path]:
    for folder, patterns in SPELLED_IN.items():
        for pattern in patterns:
            for path in sorted((ROOT / folder).rglob(pattern)):
                if not {"node_modules", "adr", "__pycache__"} & {*path.parts}:
                    yield path


def find_named(path: Path, words: set[str]) -> set[str]:
    """Return which of the words a file names, in letters of any case."""
    text = path.read_text(encoding="utf-8").lower()
    return {word for word in words if re.search(rf"\b{word}\b", text)}


def test_the_entries_of_a_batch_are_the_sum_of_all_outcomes() -> None:
    assert read_balance() == {str(outcome) for outcome in Outcome}
    settled = {str(outcome) for outcome in Outcome if outcome.settled}
    assert read_constraint("entry_failure_outcome_check") <= read_balance()
    assert read_constraint("entry_failure_outcome_check") >= read_balance() - settled


def test_each_place_that_spells_outcomes_names_all_of_them() -> None:
    outcomes = read_balance()
    named = {path.relative_to(ROOT).as_posix(): find_named(path, outcomes) for path in list_files()}
    places = {name for name, found in named.items() if len(found) >= len(outcomes) - 1}
    assert len([name for name in places if name.startswith("sql/")]) > 5
    assert {"rowferry/batch.py", "dashboards/colours.py"} < places
    assert any(name.endswith("page.css") for name in places)
    assert {name: outcomes - named[name] for name in places if named[name] < outcomes} == {}


def test_each_source_of_batches_has_a_reader_a_queue_and_words() -> None:
    sources = set(get_args(SourceName))
    payloads = ({"entries": "public.a"}, {"entries": "a", "objects": "listing"}, {"items": []})
    assert {name_source(payload) for payload in payloads} == sources == set(SOURCE_WORDS)
    assert {source for name in list_queues() for source in find_queue(name).sources} == sources
    assert find_named(ROOT / "docs" / "internals" / "architecture.md", sources) == sources


ROW = re.compile(r"\| `([\w/.]+\.py)` \| [^|]+ \| (`[^|]+`) \|")
BEGIN, END = "## One entry, function by function", "## Threads and the event loop"


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
