"""The marker `by_day`: which of a test's parameters run in each run, and that no pattern of any test is mistaken."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.checkout import ROOT, TESTS

LOOK = """
import sys, pytest
from support.running.by_day import find_faults

class Look:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        print(*find_faults(items), sep="\\n", file=sys.stderr)

sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Look()]))
"""


def find_faults(*arguments: str, folder: Path = ROOT) -> list[str]:
    command = [sys.executable, "-c", LOOK, "-m", "soak or not soak", *arguments]
    paths = f"{ROOT / 'tests'}:{':'.join(filter(None, sys.path))}"
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": paths}, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr.split("\n")[:-1]


@pytest.mark.texts
def test_no_pattern_of_any_test_is_mistaken() -> None:
    files = [str(path) for path in TESTS.rglob("test_*.py") if "by_day" in path.read_text(encoding="utf-8")]
    assert len(files) > 40
    assert [line for line in find_faults(*files) if line] == []
