"""The marker `by_day`: which of a test's parameters run in each run, and that no pattern of any test is mistaken."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.checkout import ROOT, TESTS
from support.running.by_day import is_named

LOOK = """
import sys, pytest
from support.running.by_day import find_faults

class Look:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        print(*find_faults(items), sep="\\n", file=sys.stderr)

sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Look()]))
"""
MARKED = """
import pytest

@pytest.mark.by_day("a", "b*", "d")
@pytest.mark.parametrize("name", ["a", "bc", "c"])
def test_one(name): pass

@pytest.mark.by_day("gone")
@pytest.mark.parametrize("name", ["a"])
def test_two(name): pass
"""


def find_faults(*arguments: str, folder: Path = ROOT) -> list[str]:
    command = [sys.executable, "-c", LOOK, "-m", "soak or not soak", *arguments]
    paths = f"{ROOT / 'tests'}:{':'.join(filter(None, sys.path))}"
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": paths}, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr.split("\n")[:-1]


@pytest.mark.parametrize(
    ("parameters", "patterns", "named"),
    [
        ("stream-moto", ["stream-*"], True),
        ("server-moto", ["stream-*"], False),
        ("server", ["stream", "server"], True),
        ("$[1]-places1", ["$[1]*"], True),
        ("Stream", ["stream"], False),
        ("any", [], False),
    ],
)
def test_parameters_are_named_by_patterns_as_of_a_shell(parameters: str, patterns: list[str], named: bool) -> None:
    assert is_named(parameters, patterns) is named


def test_a_pattern_that_fits_nothing_and_a_test_without_a_rest_are_found(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = by_day: x\n    soak: x\n")
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom support.running.by_day import is_nightly\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if is_nightly(item): item.add_marker(pytest.mark.soak)\n"
    )
    (tmp_path / "test_names.py").write_text(MARKED)
    assert find_faults(folder=tmp_path) == [
        "test_names.py: 'd' fits no parameters",
        "test_names.py: 'gone' fits no parameters",
        "test_names.py::test_two: by_day leaves nothing of it; mark it soak",
    ]


@pytest.mark.texts
def test_no_pattern_of_any_test_is_mistaken() -> None:
    files = [str(path) for path in TESTS.rglob("test_*.py") if "by_day" in path.read_text(encoding="utf-8")]
    assert len(files) > 40
    assert [line for line in find_faults(*files) if line] == []
