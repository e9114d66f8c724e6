"""The site of the docs in a real browser, opened from its folder: three widths, light and dark, and its search.

`make test-pages` builds the site and runs these. Without build/site, Chromium or Node.js they are skipped.
"""

from pathlib import Path

import pytest

from support.docs.doc_pages import ROOT
from support.screens.browser_looks import SIZES, check_look, look, run_browser

SITE = ROOT / "build" / "site"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not SITE.is_dir(), reason="build/site is not here: run `make docs`"),
]


@pytest.mark.parametrize("name", ["index", "plan", "commands"])
def test_a_page_can_be_read_anywhere_and_asks_no_other_host(name: str, tmp_path: Path) -> None:
    found = look(tmp_path, SITE / f"{name}.html")
    assert [(one["width"], one["scheme"]) for one in found["looks"]] == SIZES
    for one in found["looks"]:
        check_look(one)
        assert [url for url in one["requests"] if not url.startswith((SITE.as_uri(), "data:"))] == []
    backgrounds = {one["scheme"]: one["background"] for one in found["looks"]}
    assert backgrounds["light"] != backgrounds["dark"]


def test_the_search_works_without_a_server() -> None:
    found = run_browser("search.mjs", f"{SITE.as_uri()}/search.html?q=requeue")
    assert any(link.startswith("commands.html") for link in found["found"])
    assert found["said"] == []
    assert [url for url in found["requests"] if not url.startswith((SITE.as_uri(), "data:"))] == []
