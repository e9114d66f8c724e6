"""Makes a site of Markdown that is written for a forge: its links and lists stay ordinary ones.

- The lists of links under the headings of a list page are its toctree: each heading is a caption of the sidebar.
- A link to a folder leads to its README; a link that leaves the site leads to the repository.
"""

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

LIST_PAGES = ("index", "discover", "queues", "sql")
"""The pages whose lists of links under a heading make the order of the site."""

NOT_ON_THE_SITE = ("adr/*", "internals/*")
"""Pages for contributors, and proofs, that stay in the repository; reliability.md links to them."""

DOCS = Path(__file__).parents[1]

_LINK = re.compile(r"\]\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_LISTED = re.compile(r"^- \[[^\]]+\]\((?P<path>[^)\s#:]+)\)", re.MULTILINE)
_SECTION = re.compile(r"^## (?P<heading>.+)\n(?P<body>(?:(?!## ).*\n?)*)", re.MULTILINE)


def point_links(text: str, folder: str, repository: str) -> str:
    """Return a page's text with its links as the site has them; `folder` is the page's own, below docs/."""

    def point(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        is_folder = (DOCS / path).is_dir()
        if path.startswith("..") or is_left_out(f"{path}/" if is_folder else path):
            kind = "tree" if is_folder else "blob"
            inside = posixpath.normpath(posixpath.join("docs", path))
            return f"]({repository}/{kind}/main/{inside}{link['anchor'] or ''})"
        return f"]({posixpath.join(link['path'], 'README.md')})" if is_folder else link[0]

    return _LINK.sub(point, text)


def is_left_out(path: str) -> bool:
    """Return whether a page or folder below docs/ is in the repository alone."""
    return any(fnmatch(path, pattern) for pattern in NOT_ON_THE_SITE)


def list_sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each heading of the second level with the pages in the list below it, in their order."""
    for section in _SECTION.finditer(text):
        listed = [link["path"] for link in _LISTED.finditer(section["body"])]
        pages = [page for page in listed if not page.startswith("..") and not is_left_out(page)]
        if pages:
            yield section["heading"], pages


def add_toctrees(text: str) -> str:
    """Return a list page with a hidden toctree for each of its lists."""
    trees = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```"])
        for heading, pages in list_sections(text)
    ]
    return "\n\n".join([text, *trees])


def setup(app: Any) -> dict[str, bool]:
    """Have Sphinx read each page through this."""

    def read_source(_app: Any, page: str, source: list[str]) -> None:
        pointed = point_links(source[0], posixpath.dirname(page), app.config.html_theme_options["source_repository"])
        source[0] = add_toctrees(pointed) if page in LIST_PAGES else pointed

    app.connect("source-read", read_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
