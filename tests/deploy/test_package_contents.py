"""What a package index and a stranger's machine get: files, metadata, long description; the same bytes each time."""

import configparser
import os
import re
import tomllib
from pathlib import Path

import pytest

from support.docs.built_packages import build, find, read_files, read_metadata, unpack
from support.docs.doc_pages import ROOT

WHEELS = ("rowferry-0*.whl", "rowferry_lab-0*.whl")
ARCHIVES = (*WHEELS, "rowferry-0*.tar.gz", "rowferry_lab-0*.tar.gz")
PROJECTS = {"rowferry": ROOT, "rowferry_lab": ROOT / "lab"}
WHEEL_AND_PROJECT = list(zip(WHEELS, PROJECTS.values(), strict=True))
LINK = re.compile(r"""\]\(([^)\s]+)\)|\b(?:href|src|srcset)="([^"]+)\"""")
OURS = re.compile(
    r"https://github\.com/rowferry/rowferry/(?P<kind>blob|raw)/v(?P<version>[^/]+)/(?P<path>[^#]*)(?:#.*)?"
)
PICTURES = """# Pictures

![a terminal](docs/pictures/watch.svg) and [![a link](docs/pictures/watch.svg)](docs/watch.md#keys)
<a href="docs/plan.md"><img alt="a plan" src="docs/pictures/plan.png"></a> [here](#pictures) [there](https://example.com/)
"""
ON_THE_INDEX = """# Pictures

![a terminal](RAW/docs/pictures/watch.svg) and [![a link](RAW/docs/pictures/watch.svg)](BLOB/docs/watch.md#keys)
<a href="BLOB/docs/plan.md"><img alt="a plan" src="RAW/docs/pictures/plan.png"></a> [here](#pictures) [there](https://example.com/)
"""


def read_project(folder: Path) -> dict[str, str]:
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


@pytest.mark.parametrize("pattern", WHEELS)
def test_every_package_says_that_it_is_typed(built: Path, pattern: str) -> None:
    names = [name for name, _ in read_files(find(built, pattern)) if ".dist-info/" not in name]
    packages = {name.split("/")[0] for name in names}
    assert packages
    assert {f"{package}/py.typed" for package in packages} <= set(names)
    assert "Typing :: Typed" in read_metadata(find(built, pattern)).get_all("Classifier", [])


@pytest.mark.soak
def test_the_unit_of_systemd_is_in_the_wheel(built: Path) -> None:
    files = dict(read_files(find(built, "rowferry-0*.whl")))
    for part in ("worker", "exporter"):
        unit = files[f"rowferry_{part}/rowferry-{part}.service"]
        assert unit == (ROOT / part / f"rowferry-{part}.service").read_bytes()


@pytest.mark.parametrize(("pattern", "project"), WHEEL_AND_PROJECT)
def test_the_entry_points_are_those_of_the_project(built: Path, pattern: str, project: Path) -> None:
    asked = read_project(project)
    parser = configparser.ConfigParser(delimiters="=")
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    files = dict(read_files(find(built, pattern)))
    parser.read_string(next(text.decode() for name, text in files.items() if name.endswith("/entry_points.txt")))
    scripts: object = {"console_scripts": asked["scripts"]} if "scripts" in asked else {}
    groups: object = asked["entry-points"]
    assert isinstance(scripts, dict)
    assert isinstance(groups, dict)
    assert {section: dict(parser[section]) for section in parser.sections()} == {**groups, **scripts}
    modules = {
        value.partition(":")[0].replace(".", "/") for section in parser.sections() for _, value in parser.items(section)
    }
    assert not [name for name in modules if f"{name}.py" not in files and f"{name}/__init__.py" not in files]


@pytest.mark.parametrize("pattern", WHEELS)
def test_the_metadata_tells_license_versions_and_where_to_ask(built: Path, pattern: str) -> None:
    metadata = read_metadata(find(built, pattern))
    told = {name: metadata[name] for name in ("Metadata-Version", "Version", "License-Expression", "Requires-Python")}
    assert told == {
        "Metadata-Version": "2.4",
        "Version": VERSION,
        "License-Expression": "Apache-2.0",
        "Requires-Python": ">=3.11",
    }
    licenses = [content for name, content in read_files(find(built, pattern)) if name.endswith("/licenses/LICENSE")]
    assert licenses == [(ROOT / "LICENSE").read_bytes()]
    classifiers = metadata.get_all("Classifier", [])
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)} <= set(classifiers)
    urls = [line.partition(", ")[0] for line in metadata.get_all("Project-URL", [])]
    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues"} == set(urls)


@pytest.mark.parametrize(("pattern", "folder"), WHEEL_AND_PROJECT)
def test_every_link_of_the_long_description_leads_to_a_file_of_this_version(
    built: Path, pattern: str, folder: Path
) -> None:
    text = read_metadata(find(built, pattern)).get_payload()
    assert isinstance(text, str)
    before = (folder / "README.md").read_text()
    relative = [link for link in links_of(before) if not re.match(r"[a-z]+:|#", link)]
    found = [OURS.fullmatch(link) for link in links_of(text) if not link.startswith("#")]
    files = [match["path"] for match in found if match]
    assert len(files) == len(relative)
    assert not [link for link in links_of(text) if not re.match(r"https?:|#", link)]
    assert {match["version"] for match in found if match} <= {VERSION}
    assert not [path for path in files if not (ROOT / path).exists()]


def links_of(text: str) -> list[str]:
    return [link or other for link, other in LINK.findall(text)]


def test_pictures_are_shown_and_links_opened_on_the_index(built: Path, tmp_path: Path) -> None:
    project = unpack(find(built, "rowferry-0*.tar.gz"), tmp_path)
    (project / "PKG-INFO").unlink()  # its description would be taken as it is
    (project / "README.md").write_text(PICTURES)
    build(project, tmp_path, "-t", "wheel")
    base = "https://github.com/rowferry/rowferry"
    expected = ON_THE_INDEX.replace("RAW", f"{base}/raw/v{VERSION}").replace("BLOB", f"{base}/blob/v{VERSION}")
    assert read_metadata(find(tmp_path, "*.whl")).get_payload() == expected


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
