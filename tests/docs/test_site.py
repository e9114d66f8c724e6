"""The site of the docs: its order has every page once, and its links lead where those on a forge lead."""

import posixpath
import re
from urllib.parse import urlsplit

import pytest

from forge_pages import DOCS, LIST_PAGES, add_toctrees, is_left_out, list_sections, point_links
from support.docs.doc_pages import PAGES, read_links

pytestmark = pytest.mark.texts

REPOSITORY = "https://forge.example/rowferry"


def list_pages(list_page: str) -> list[str]:
    """Return the pages that a list page names, below docs/."""
    text = (DOCS / f"{list_page}.md").read_text(encoding="utf-8")
    folder = posixpath.dirname(list_page)
    return [posixpath.normpath(posixpath.join(folder, page)) for _, found in list_sections(text) for page in found]


def list_written() -> list[str]:
    """Return the pages of the site, below docs/."""
    paths = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    return [path for path in paths if not is_left_out(path)]


def test_every_page_is_in_the_order_of_the_site_once() -> None:
    named = [page for list_page in LIST_PAGES for page in list_pages(list_page)]
    assert sorted([*named, "index.md"]) == sorted(list_written())


def test_a_list_becomes_a_toctree_under_its_heading() -> None:
    text = "# T\n\nSee [this](a.md).\n\n## One\n\n- [A](a.md): what it is\n- [B](b.md#part)\n\n## Two\n\nNo list.\n"
    assert list(list_sections(text)) == [("One", ["a.md"])]
    assert add_toctrees(text).endswith("```{toctree}\n:hidden:\n:caption: One\n\na.md\n```")


@pytest.mark.parametrize(
    ("folder", "link", "pointed"),
    [
        ("", "plan.md#urls", "plan.md#urls"),
        ("", "#here", "#here"),
        ("", "https://other.example/a.md", "https://other.example/a.md"),
        ("", "adr/", f"{REPOSITORY}/tree/main/docs/adr"),
        ("", "adr/0001-the-lock-is-the-lease.md", f"{REPOSITORY}/blob/main/docs/adr/0001-the-lock-is-the-lease.md"),
        ("", "internals/sweep.md#read-the-csv", f"{REPOSITORY}/blob/main/docs/internals/sweep.md#read-the-csv"),
        ("", "../README.md#more", f"{REPOSITORY}/blob/main/README.md#more"),
        ("", "../sql/views", f"{REPOSITORY}/tree/main/sql/views"),
        ("recipes", "../plan.md", "../plan.md"),
        ("recipes", "../../CHANGELOG.md", f"{REPOSITORY}/blob/main/CHANGELOG.md"),
    ],
)
def test_a_link_of_the_forge_leads_to_the_same_place(folder: str, link: str, pointed: str) -> None:
    assert point_links(f"see [it]({link}).", folder, REPOSITORY) == f"see [it]({pointed})."


def test_every_link_to_another_host_is_well_formed() -> None:
    """Whether somebody answers there: `make docs DOCS_ARGS=--external`."""
    links = {link for page in PAGES for link in read_links(page) if "://" in link}
    assert links
    for link in links:
        url = urlsplit(link)
        assert url.scheme == "https", link
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", url.netloc), link
        assert not re.search(r"[\s<>\"\\^`{|}]", link), link
