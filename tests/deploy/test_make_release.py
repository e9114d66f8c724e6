"""`make release` refuses what cannot be released before it touches anything, and makes the same archives each time."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from release.documents import pack
from release.steps import clean_environment
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


# Archives, sums, commands


def test_an_archive_of_documents_is_the_same_each_time(tmp_path: Path) -> None:
    for name, mode, modified in (("one", 0o755, 1_600_000_000), ("two", 0o700, 1_500_000_000)):
        site = tmp_path / name / "site"
        (site / ".doctrees").mkdir(parents=True)
        for path in ("index.html", "b.html", ".buildinfo", ".doctrees/index.doctree"):
            (site / path).write_text(path)
            (site / path).chmod(mode)
            os.utime(site / path, (modified, modified))
        pack(tmp_path / f"{name}.tar.gz", "rowferry-docs", [site], 1_700_000_000)
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        assert archive.getnames() == ["rowferry-docs/site/b.html", "rowferry-docs/site/index.html"]
        assert {(member.mode, member.mtime, member.uid) for member in archive} == {(0o644, 1_700_000_000, 0)}


# Steps


def test_a_step_sees_no_settings_of_this_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "ROWFERRY_PLAN", "PGHOST", "PYTHONPATH", "AWS_PROFILE"):
        monkeypatch.setenv(name, "of this shell")
    assert "of this shell" not in clean_environment({}).values()
    assert clean_environment({"SOURCE_DATE_EPOCH": "1"})["SOURCE_DATE_EPOCH"] == "1"
