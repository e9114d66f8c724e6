"""With CI=true only the skips of tests/skips.toml are taken, and all reasons in the tests are among them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.checkout import ROOT, TESTS
from support.running.skips import AllowedSkip, find_entry, read_allowed_skips, read_why_not_run


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
