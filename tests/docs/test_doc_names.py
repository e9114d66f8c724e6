"""Paths, links, variables and words in the docs lead to what is there; the site has every page once."""

import posixpath
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from forge_pages import DOCS, LIST_PAGES, is_left_out, list_sections
from rowferry.plan import LegacySide, ProductionSide
from rowferry.s3.access.credentials import _name_variables
from support.docs.command_line import list_commands, list_options
from support.docs.doc_pages import PAGES, ROOT, list_code, read_anchors, read_links

pytestmark = pytest.mark.texts

README = ROOT / "README.md"

TREES = (
    *("rowferry", "enqueue", "worker", "cli", "exporter", "lab", "sql", "tests", "tools", "docs", "requirements"),
    *("dashboards", ".ci"),
)
PATH = re.compile(rf"(?:\./)?(?:{'|'.join(map(re.escape, TREES))})/[\w.*/{{}}-]*")
FILE_NAME = re.compile(r"[\w-]+\.(?:py|sql|toml|md|txt)")
VARIABLE = re.compile(r"\b(?:ROWFERRY_[A-Z_]*[A-Z]|DATABASE_URL(?:_FILE)?)\b")

OWN_FILES = {"rowferry.toml", "rehearsal.toml", "look.py"}
"""Names of files that are the reader's own, or an example's."""


def show(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_path_exists(subtests: pytest.Subtests) -> None:
    files = {path.name for path in ROOT.iterdir()}
    files |= {path.name for tree in TREES for path in (ROOT / tree).rglob("*.*")}
    for page, code in list_code():
        if PATH.fullmatch(code):
            pattern = re.sub(r"\{.*?\}", "*", code.removeprefix("./").rstrip("/"))
            with subtests.test(show(page)):
                assert list(ROOT.glob(pattern)), f"{code} does not exist"
        elif FILE_NAME.fullmatch(code) and code not in OWN_FILES:
            with subtests.test(show(page)):
                assert code in files, f"there is no file {code}"


def test_every_link_leads_somewhere(subtests: pytest.Subtests) -> None:
    anchors: dict[Path, set[str]] = {}
    links = [(page, link) for page in PAGES for link in read_links(page)]
    for page, link in [(page, link) for page, link in links if not link.startswith(("https://", "http://"))]:
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        with subtests.test(f"{show(page)}: {link}"):
            assert target.exists()
            if anchor:
                anchors.setdefault(target, read_anchors(target))
                assert anchor in anchors[target]


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, new = {README}, {README}
    while new:
        found = {
            (page.parent / link.split("#")[0]).resolve() for page in new for link in read_links(page) if ".md" in link
        }
        folders = {(page.parent / link).resolve() for page in new for link in read_links(page) if link.endswith("/")}
        found |= {page for page in PAGES if page.parent in folders}
        new = found - reached
        reached |= found
    assert set(PAGES) <= reached


def list_variables() -> set[str]:
    """Return the variables that rowferry, its compose.yaml or its lab read."""
    sources = "".join(
        path.read_text() for tree in ("rowferry", "queues", "cli", "lab") for path in (ROOT / tree).rglob("*.py")
    )
    known = {"DATABASE_URL", *re.findall(r'"(ROWFERRY_\w+)"', sources)}
    for side in (LegacySide("old"), ProductionSide("new")):
        known |= set(_name_variables(side))
    known |= {f"{name}_FILE" for name in known}
    known |= {str(option.envvar) for name in list_commands() for option in list_options(name)}
    return known | set(re.findall(r"\$\{(ROWFERRY_\w+)", (ROOT / "compose.yaml").read_text()))


def test_every_variable_is_one_that_rowferry_reads(subtests: pytest.Subtests) -> None:
    known = list_variables()
    for page in PAGES:
        with subtests.test(show(page)):
            text = page.read_text()
            found = set(VARIABLE.findall(text))
            families = {name for name in found if f"`{name}_…`" in text or f"{name}_*" in text}
            assert found - families <= known
            assert all(any(name.startswith(f"{family}_") for name in known) for family in families)


def list_pages(list_page: str) -> list[str]:
    """Return the pages that a list page names, below docs/."""
    text = (DOCS / f"{list_page}.md").read_text(encoding="utf-8")
    folder = posixpath.dirname(list_page)
    return [posixpath.normpath(posixpath.join(folder, page)) for _, found in list_sections(text) for page in found]


def test_every_page_is_in_the_order_of_the_site_once() -> None:
    named = [page for list_page in LIST_PAGES for page in list_pages(list_page)]
    written = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    assert sorted([*named, "index.md"]) == sorted(path for path in written if not is_left_out(path))


def test_every_link_to_another_host_is_well_formed() -> None:
    """Whether somebody answers there: `make docs DOCS_ARGS=--external`."""
    links = {link for page in PAGES for link in read_links(page) if "://" in link}
    assert links
    for link in links:
        url = urlsplit(link)
        assert url.scheme == "https", link
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", url.netloc), link
        assert not re.search(r"[\s<>\"\\^`{|}]", link), link
