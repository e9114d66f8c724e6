"""One version: that of pyproject.toml. Everything else that names it is held to it, and written with it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rowferry import __version__
from support.docs.doc_pages import ROOT

PAST = re.compile(
    r"CHANGELOG\.md|docs/speed\.md|bench/results/.*|requirements/.*|.*package-lock\.json|examples/.*|tests/.*"
)
"""Files whose numbers are of the past, of other packages, or made up."""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [folder / "tools" / "version", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def list_tracked() -> list[str]:
    """Return the files that git has or would take, or skip where this is no checkout."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of this checkout as it is, under git."""
    for path in list_tracked():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, timeout=100, check=True)
    return tmp_path


def test_every_place_names_the_version_of_the_project() -> None:
    assert list_tracked()
    assert run(ROOT).stdout.strip() == __version__
    done = run(ROOT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_new_version_is_written_everywhere(checkout: Path) -> None:
    assert run(checkout, "9.8.7rc1").returncode == 0
    assert run(checkout).stdout == "9.8.7rc1\n"
    assert run(checkout, "--check").returncode == 0
    old = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.]*\d)")
    texts = {path: (checkout / path).read_bytes().decode(errors="replace") for path in list_tracked()}
    left = {path for path, text in texts.items() if old.search(text) and not PAST.fullmatch(path)}
    assert left == set(), "teach tools/version the form in which these name it"
    assert '"rowferry-lab==9.8.7rc1"' in texts["pyproject.toml"]
    assert "image: rowferry:9.8.7rc1" in texts["compose.yaml"]
