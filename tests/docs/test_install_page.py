"""docs/install.md: every command block runs as it stands, without the network; its tables are those of the project."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from release.packages import FOLDERS, pack, write_sums
from support.docs.built_packages import build, find, unpack
from support.docs.doc_pages import ROOT, read_blocks, read_section, read_table

PAGE = ROOT / "docs" / "install.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
CHECKOUT = ("From a checkout", "With the pinned versions")
FILES = ("From the files of a release", "Images, services, Kubernetes", "What is in a release", "Upgrade", "Uninstall")
"""Sections with commands: for the folder of a checkout, and, one after the other, for that of a release."""


def read_commands(heading: str) -> str:
    section = read_section(PAGE, heading)
    return "".join(block.text for block in read_blocks("sh", pages=[PAGE]) if block.text in section)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of a release; the documents are made up."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "lab"):
        build(project, folder)
    pages = [tmp_path_factory.mktemp("documents") / name for name in FOLDERS]
    for page in pages:
        page.mkdir()
    (pages[FOLDERS.index("man")] / "rowferry.1").write_text(".TH rowferry 1")
    pack(folder / f"rowferry-{VERSION}-docs.tar.gz", f"rowferry-{VERSION}-docs", pages, 1_700_000_000)
    (folder / f"rowferry-{VERSION}.cdx.json").write_text("{}")
    write_sums(folder)
    return folder


@pytest.fixture
def checkout(dist: Path, tmp_path: Path) -> Path:
    """Return a folder with what a checkout is installed from."""
    folder = unpack(find(dist, "rowferry-*[0-9].tar.gz"), tmp_path)
    shutil.copytree(ROOT / "requirements", folder / "requirements", dirs_exist_ok=True)  # the archive has some
    return folder


@pytest.fixture
def environment(dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a user without a network, who has every dependency already and a python3 without pip."""
    programs, dependencies, home = (tmp_path / name for name in ("bin", "dependencies", "home"))
    for folder in (programs, dependencies, home):
        folder.mkdir()
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.match(r"_*(rowferry|__editable__|pip\b|setuptools|distutils)", path.name):
            (dependencies / path.name).symlink_to(path)
    for name in ("VIRTUAL_ENV", "PYTHONHOME"):
        monkeypatch.delenv(name, raising=False)
    variables = {"HOME": home, "PYTHONPATH": dependencies, "PIP_FIND_LINKS": dist, "PIP_NO_INDEX": "1"}
    # pip takes "0" for this one: there is no network to bring the build tools.
    variables |= {"PIP_NO_BUILD_ISOLATION": "0", "PIP_ROOT_USER_ACTION": "ignore", "PIP_NO_COMPILE": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return home


def run_commands(commands: str, folder: Path) -> str:
    """Run commands in one shell that ends at the first failure; return what they print."""
    shell = ["bash", "-eu", "-o", "pipefail", "-c", commands]
    done = subprocess.run(shell, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_section_with_commands_is_run_here() -> None:
    text = "".join(read_commands(heading) for heading in (*CHECKOUT, *FILES))
    assert sorted(text) == sorted("".join(block.text for block in read_blocks("sh", pages=[PAGE])))


@pytest.mark.by_day("With the pinned versions")
@pytest.mark.site
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("heading", CHECKOUT)
def test_a_checkout_is_installed(heading: str, checkout: Path) -> None:
    commands = read_commands(heading)
    assert "pip install" in commands
    printed = run_commands(f"{commands}\nrowferry --version; command -v rowferry", checkout)
    assert printed.endswith(f"rowferry {VERSION}\n{checkout}/venv/bin/rowferry\n")


@pytest.mark.site
@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="macOS has shasum instead")
def test_the_files_of_a_release_are_installed_used_upgraded_and_removed(
    dist: Path, environment: Path, database: str
) -> None:
    commands = [read_commands(heading) for heading in FILES]
    assert "uninstall" in commands[-1]
    printed = run_commands("\n".join([*commands, "! command -v rowferry; pip list"]), dist)
    assert f"rowferry-{VERSION}-py3-none-any.whl: OK" in printed
    assert f"rowferry {VERSION}\n" in printed
    assert "Usage: rowferry demo" in printed
    assert re.search(
        rf"^{re.escape(str(dist))}/venv/.*/rowferry_worker/rowferry-worker\.service$", printed, re.MULTILINE
    )
    assert (environment / ".local/share/man/man1/rowferry.1").read_text() == ".TH rowferry 1"
    assert "rowferry" not in printed.splitlines()[-1]
    assert not re.search(r"^rowferry", printed.rpartition("Package")[2], re.MULTILINE)


@pytest.mark.site
@pytest.mark.usefixtures("environment")
def test_the_ways_of_pip_from_an_index_work(tmp_path: Path) -> None:
    (row,) = (row for row in read_table(PAGE, "From a package index") if row[0].startswith("pip,"))
    prelude = "python3 -m venv venv; . venv/bin/activate\n"
    first, with_demo = (prelude + cell.strip("`") for cell in row[1:])
    assert f"rowferry {VERSION}" in run_commands(f"{first}\nrowferry --version", tmp_path)
    assert "Usage: rowferry demo" in run_commands(f"{with_demo}\nrowferry demo --help", tmp_path)


def test_the_extras_are_those_of_the_project() -> None:
    assert {row[0].strip("`") for row in read_table(PAGE, "Extras")} == set(PROJECT["optional-dependencies"])


def test_the_files_of_a_release_are_all_named(dist: Path) -> None:
    told = {name for row in read_table(PAGE, "What is in a release") for name in re.findall(r"`([^`]+)`", row[0])}
    assert told == {path.name for path in dist.iterdir() if path.is_file()}
