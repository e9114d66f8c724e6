"""What `make docs` finds: a link, an anchor or a page that leads nowhere, or is nowhere, fails the build."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.docs.doc_pages import ROOT

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(not find_spec("sphinx"), reason="requirements/docs.txt is not installed: run `make docs`"),
]


def build(pages: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of other pages, as tools/build-docs does."""
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--nitpicky", "-b", "html", "-c", str(ROOT / "docs")]
    command = [sys.executable, "-m", "sphinx", *options, str(pages), str(pages / "out")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def write(folder: Path, **pages: str) -> None:
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


INDEX = "# Index\n\n## One\n\n- [A](a.md)\n"


def test_pages_whose_links_lead_somewhere_are_built(tmp_path: Path) -> None:
    write(tmp_path, index=INDEX, a="# A\n\n## It's `here`\n\nSee [above](#its-here) and [the README](../README.md).\n")
    done = build(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "/blob/main/README.md" in (tmp_path / "out" / "a.html").read_text("utf-8")


@pytest.mark.by_day("page", "anchor")
@pytest.mark.parametrize(
    ("pages", "fault"),
    [
        ({"a": "# A\n\nSee [there](#nowhere).\n"}, "nowhere"),
        ({"a": "# A\n\nSee [there](index.md#nowhere).\n"}, "nowhere"),
        ({"a": "# A\n\nSee [there](gone.md).\n"}, "gone.md"),
        ({"a": "# A\n\n![there](gone.png)\n"}, "gone.png"),
        ({"a": "# A\n", "b": "# B\n"}, "b.md"),
    ],
    ids=["anchor", "anchor-elsewhere", "page", "picture", "unlisted"],
)
def test_what_leads_nowhere_fails_the_build(tmp_path: Path, pages: dict[str, str], fault: str) -> None:
    write(tmp_path, index=INDEX, **pages)
    done = build(tmp_path)
    assert done.returncode == 1
    assert fault in done.stderr
