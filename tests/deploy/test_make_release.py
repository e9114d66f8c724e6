"""`make release` refuses what cannot be released before it touches anything; one version is named everywhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rowferry import __version__
from support.docs.doc_pages import ROOT

NEEDED = (
    "pyproject.toml",
    "lab/pyproject.toml",
    "CHANGELOG.md",
    "tools",
    "compose.yaml",
    "worker/Dockerfile",
    ".gitignore",
)
"""What is read before the first step."""
PINNED = re.compile(r"(?m)^((?: +image: |ARG PYTHON_IMAGE=)(?!rowferry)[^@\n]+)(?:@.*)?$")
VERSION = subprocess.run(
    [ROOT / "tools" / "version"], capture_output=True, text=True, timeout=60, check=True
).stdout.strip()
IDENTITY = ("-c", "user.name=A tester", "-c", "user.email=tester@example.com")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, capture_output=True, timeout=60, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository of its own that could be released, with a day in its changelog."""
    folder = tmp_path / "checkout"
    for name in NEEDED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        source = ROOT / name
        shutil.copytree(source, folder / name) if source.is_dir() else shutil.copy(source, folder / name)
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(re.sub(r"(?m)^## .*$", f"## {VERSION} - 2026-12-01", changelog.read_text(), count=1))
    for name in ("compose.yaml", "worker/Dockerfile"):
        (folder / name).write_text(PINNED.sub(rf"\1@sha256:{'ab' * 32}", (folder / name).read_text()))
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Change something")


def ask_release(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Ask what would be released, and stop before the first step."""
    return run_release(checkout, "-c", "from release.readiness import read_release; print(read_release())")


def run_release(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(checkout / "tools")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=checkout, env=variables, capture_output=True, text=True, timeout=60, check=False)


def test_a_clean_checkout_whose_version_changelog_and_tag_agree_is_released(checkout: Path) -> None:
    answer = ask_release(checkout)
    assert answer.returncode == 0, answer.stderr
    assert f"version='{VERSION}', commit='{git(checkout, 'rev-parse', 'HEAD')}'" in answer.stdout
    assert "is_dated=True" in answer.stdout
    git(checkout, "tag", f"v{VERSION}")
    assert ask_release(checkout).stdout == answer.stdout


COMMIT = ("add --all", "commit --quiet --message changed")
TAG = (f"tag --annotate v{VERSION} --message early",)
NO_DAY, NO_DIGEST = ("CHANGELOG.md", "2026-12-01", "unreleased"), ("worker/Dockerfile", "@sha256:" + "ab" * 32, "")
REFUSED = [
    ("Files differ from the last commit: 1, first compose.yaml; commit or stash", ("compose.yaml", "image", "x"), ()),
    (r"worker/Dockerfile:\d+ names python:\S+ without a digest; run make lock-images", NO_DIGEST, COMMIT),
    (
        rf"pyproject.toml says {VERSION}, but compose.yaml:.* names 7.7.7; run tools/version {VERSION}",
        ("compose.yaml", f"rowferry-lab:{VERSION}", "rowferry-lab:7.7.7"),
        COMMIT,
    ),
    (
        "CHANGELOG.md begins with 0.0.9; write what is new first",
        ("CHANGELOG.md", f"## {VERSION} - ", "## 0.0.9 - "),
        COMMIT,
    ),
    (f"v{VERSION} is the tag of another commit", ("README.md", "", "new"), (*TAG, *COMMIT)),
    (f"v{VERSION} is tagged, but CHANGELOG.md has no day for it", NO_DAY, (*COMMIT, *TAG)),
    ("This is no git checkout with a commit; clone the repository", None, ()),
]
"""What `make release` says; what is changed in which file, None: `.git` is gone; and what git is told then."""


@pytest.mark.parametrize(("words", "changed", "commands"), REFUSED)
def test_what_cannot_be_released_is_refused_before_anything_is_gone(
    words: str,
    changed: tuple[str, str, str] | None,
    commands: tuple[str, ...],
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(checkout.parent))
    change(checkout, *changed) if changed else shutil.rmtree(checkout / ".git")
    for command in commands:
        git(checkout, *command.split())
    (checkout / "dist").mkdir()
    (checkout / "dist" / "before").write_text("made before")
    done = run_release(checkout, "-m", "release", "dist")
    assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
    assert re.fullmatch(f"release: .*{words}.*\n", done.stderr)
    assert (checkout / "dist" / "before").read_text() == "made before"


def change(checkout: Path, name: str, old: str, new: str) -> None:
    path = checkout / name
    text = path.read_text() if path.exists() else ""
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no git checkout")
def test_every_place_names_the_version_of_the_project() -> None:
    for arguments, said in ((), f"{__version__}\n"), (("--check",), ""):
        command = [ROOT / "tools" / "version", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
