"""The site of the docs: its order has every page once, and its links to other hosts are well formed."""

import posixpath
import re
from urllib.parse import urlsplit

import pytest

from forge_pages import DOCS, LIST_PAGES, is_left_out, list_sections
from support.docs.doc_pages import PAGES, read_links

pytestmark = pytest.mark.texts


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


def test_every_link_to_another_host_is_well_formed() -> None:
    """Whether somebody answers there: `make docs DOCS_ARGS=--external`."""
    links = {link for page in PAGES for link in read_links(page) if "://" in link}
    assert links
    for link in links:
        url = urlsplit(link)
        assert url.scheme == "https", link
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", url.netloc), link
        assert not re.search(r"[\s<>\"\\^`{|}]", link), link
