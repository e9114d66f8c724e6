"""A run of `make mutants`, on a small module of its own and on one SQL function of rowferry."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mutants.modules import Module
from mutants.mutant import Mutant
from mutants.results import Result, Results
from mutants.runs import Events, run_modules
from support.checkout import ROOT
from support.processes.processes import is_running

CODE = """\
MOST = 120

def is_old(age):
    return age >= 18

def is_known(age):
    return age <= MOST

def tell(age):
    return "old" if is_old(age) else "young"

if __name__ == "__main__":
    print(tell(30))
"""
TESTS = """\
import subprocess
import sys
from pathlib import Path

from ages import is_known, is_old

RUNS = Path(__file__).with_name("runs")

def test_an_age_is_old():
    assert is_old(30)

def test_an_age_is_known():
    assert is_known(120)

def test_that_fails_once_in_a_while():
    is_old(30)
    with RUNS.open("a") as runs:
        runs.write("x")
    assert len(RUNS.read_text()) % 2
"""
BY_PROCESS = """\
import subprocess
import sys

def test_an_age_is_told():
    run = subprocess.run([sys.executable, "-c", "import ages; print(ages.tell(30))"], capture_output=True, text=True)
    assert run.stdout == "old\\n"
"""
FREEZES = """
import gc

def pytest_collection_finish():
    gc.freeze()
"""
HANGS = """
import json, os, pathlib, sys, time
from mutants import children

def hang(say):
    say({"began": True})
    reader, writer = os.pipe()
    orphan = os.fork()
    if orphan == 0:
        os.setsid()
        os.write(writer, b"x")
        time.sleep(600)
    os.read(reader, 1)
    say({"orphan": orphan})
    time.sleep(600)

children.adopt_orphans()
ended = children.run_child(hang, 1)
print(json.dumps({"said": ended.said, "in_time": ended.in_time}))
"""


@pytest.fixture
def ages(tmp_path: Path) -> Module:
    """A module with two files of tests, one of which starts a process."""
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    for name, text in {"ages": CODE, "test_ages": TESTS, "test_by_process": BY_PROCESS, "conftest": FREEZES}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return Module("ages", tmp_path, ("ages.py",), ("test_ages.py",), ("test_by_process.py",))


def change(module: Module, before: str, after: str) -> Mutant:
    """Return a mutant of the module's only file."""
    [path] = module.files
    text = (module.root / path).read_text(encoding="utf-8")
    assert text.count(before) == 1
    line = text.count("\n", 0, text.index(before)) + 1
    return Mutant(
        path=path,
        line=line,
        last_line=line,
        column=1,
        operator="by hand",
        before=before,
        after=after,
        source=before,
        write=lambda: text.replace(before, after),
    )


def run(module: Module, *mutants: Mutant) -> tuple[list[Result], list[dict[str, Any]]]:
    """Run mutants; return what came of each, and what was said of the tests."""
    results: list[Result] = []
    broken: list[dict[str, Any]] = []
    events = Events(lambda *_: None, lambda *found: results.append(found[2]), lambda _, line: broken.append(line))
    kept = Results(module.root / "build" / "mutants" / f"{module.name}.jsonl")
    run_modules({module: list(mutants)}, kept, events, jobs=1, leaves_out_failing=False)
    return results, broken


def test_mutants_that_a_test_or_its_process_notices_are_told_from_survivors(ages: Module) -> None:
    results, broken = run(
        ages,
        change(ages, "age >= 18", "age < 18"),
        change(ages, "age >= 18", "age > 18"),
        change(ages, "age <= MOST", "age < MOST"),
        change(ages, '"old" if', '"older" if'),
    )
    assert not broken
    killed, survived, at_its_edge, by_process = results
    assert (killed.verdict, killed.by) == ("killed", "test_ages.py::test_an_age_is_old")
    assert (at_its_edge.verdict, at_its_edge.by) == ("killed", "test_ages.py::test_an_age_is_known")
    assert (by_process.verdict, by_process.by) == ("killed", "test_by_process.py::test_an_age_is_told")
    assert survived.verdict == "survived"
    assert survived.ran == 3, "what does not reach the mutant does not run, what starts a process does"


@pytest.mark.soak
def test_what_runs_at_the_import_is_changed_too(ages: Module) -> None:
    [result, survived], _ = run(
        ages, change(ages, "MOST = 120", "MOST = 119"), change(ages, "MOST = 120", "MOST = 121")
    )
    assert (result.verdict, result.by) == ("killed", "test_ages.py::test_an_age_is_known")
    assert survived.verdict == "survived"


def test_a_test_that_fails_without_a_mutant_stops_the_module(ages: Module) -> None:
    tests = ages.root / "test_ages.py"
    tests.write_text(TESTS.replace("is_old(30)\n\n", "is_old(3)\n\n"), encoding="utf-8")
    results, [broken] = run(ages, change(ages, "age >= 18", "age < 18"))
    assert results == []
    assert broken == {
        "broken": "its tests fail without a mutant",
        "failed": ["test_ages.py::test_an_age_is_old"],
    }


@pytest.mark.soak
def test_an_sql_function_is_changed_in_the_tests_databases() -> None:
    test = "tests/sql/test_verdicts_written.py::test_done_counts_every_entry"
    module = Module("of-a-test", ROOT, ("sql/functions/finish_batch.sql",), (test,))
    results, broken = run(
        module,
        change(module, "('RELEASED', 'LOST'), true)", "('RELEASED', 'LOST'), false)"),
        change(module, "('RELEASED', 'LOST'), true)", "('LOST', 'RELEASED'), true)"),
        change(module, "('RELEASED', 'LOST'), true)", "('RELEASED', 'LOST', true)"),
    )
    assert not broken
    assert [(result.verdict, result.by) for result in results[:2]] == [("killed", test), ("survived", "")]
    assert results[2].verdict == "invalid", "PostgreSQL does not take it"


def test_a_child_that_hangs_is_stopped_with_all_that_it_started() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    done = subprocess.run([sys.executable, "-c", HANGS], env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    began, orphan = found["said"]
    assert began == {"began": True}
    assert not found["in_time"]
    assert not is_running(orphan["orphan"])
