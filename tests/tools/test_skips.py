"""With CI=true only the skips of tests/skips.toml are taken, and a run says what it ran on and what it left out."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.checkout import ROOT, TESTS
from support.running.skips import AllowedSkip, find_entry, read_allowed_skips, read_why_not_run

UNLISTED = """
    import pytest

    @pytest.mark.superuser
    def test_that_runs():
        pass

    def test_that_waits_for_a_server():
        pytest.skip("the moon is not here")
"""
BY_MARK = """
    import pytest

    @pytest.mark.skipif(True, reason="the moon is not here")
    def test_that_waits():
        raise AssertionError
"""


def run_suite(folder: Path, *files: str, processes: int = 0, ci: bool = True) -> tuple[int, list[str]]:
    """Run files of tests with the plugin alone; return the exit status and the lines on standard output."""
    (folder / "tests").mkdir()
    for number, content in enumerate(files):
        (folder / "tests" / f"test_{number}.py").write_text("\n".join(line[4:] for line in content.splitlines()))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = superuser\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name != "CI"}
    environment |= {"PYTHONPATH": str(TESTS), **({"CI": "true"} if ci else {})}
    options = ["-ra", "-p", "support.running.plugin", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command = [sys.executable, "-m", "pytest", *options, "-n", str(processes), "--continue-on-collection-errors"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.by_day("2")
@pytest.mark.parametrize("processes", [0, 2])
def test_each_skip_that_is_not_listed_fails_the_run_and_is_named(processes: int, tmp_path: Path) -> None:
    status, lines = run_suite(tmp_path, UNLISTED, BY_MARK, processes=processes)
    assert status == 1
    refused = {line for line in lines if "tests/skips.toml does not allow this skip here" in line}
    for number in range(2):
        assert [line for line in refused if f"test_{number}.py" in line and "the moon is not here" in line], lines
    assert "1 failed, 1 passed, 1 error" in lines[-1]


def test_an_absent_part_may_be_absent_only_where_its_installation_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.running.skips.NOT_RUN", tmp_path)
    entries, reason = read_allowed_skips(), "versitygw is not here: `make servers` builds it where `go` is installed"
    assert find_entry(entries, "tests/s3/test_it.py::test_it", reason) is None
    (tmp_path / "versitygw").write_text("there is no go here\n")
    assert find_entry(entries, "tests/s3/test_it.py::test_it", reason) is not None
    assert read_why_not_run("versitygw") == "there is no go here"


@pytest.mark.texts
def test_every_reason_in_the_tests_is_listed() -> None:
    entries = read_allowed_skips()
    missing = [
        f"{path}: {reason}"
        for path in sorted(TESTS.rglob("*.py"))
        if path.parent != TESTS / "tools" and "skip" in (text := path.read_text(encoding="utf-8"))
        for reason in find_reasons(ast.parse(text))
        if reason not in IMPOSSIBLE and not any(is_about(entry, path, reason) for entry in entries)
    ]
    assert missing == []


IMPOSSIBLE = {"only the main thread hears signals", "x; `make test` fetches it"}
"""What no run of CI has, so that it would be an error there, and what is filled in as a whole."""


def is_about(entry: AllowedSkip, path: Path, reason: str) -> bool:
    """Return whether an entry is about a skip in this file, or in a module that any test may take."""
    file = path.relative_to(ROOT).as_posix()
    return entry.is_about(f"{file}::test", reason) or entry.is_about(file, reason)


def find_reasons(tree: ast.Module) -> Iterator[str]:
    """Yield the reasons of a file's skips that are written out; what is filled in is an `x`."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr not in {"skip", "skipif", "importorskip"}:
            continue
        said = [keyword.value for keyword in call.keywords if keyword.arg == "reason"]
        said += call.args[:1] if call.func.attr == "skip" else []
        for node in said:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
