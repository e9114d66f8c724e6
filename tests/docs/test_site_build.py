"""What `make docs` finds: a link, an anchor or a page that leads nowhere, or is nowhere, fails the build."""

import re
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


def test_pages_whose_links_lead_somewhere_are_built(tmp_path: Path) -> None:
    index = "# Index\n\n## One\n\n- [A](a.md)\n"
    write(tmp_path, index=index, a="# A\n\n## It's `here`\n\nSee [above](#its-here) and [the README](../README.md).\n")
    done = build(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "/blob/main/README.md" in (tmp_path / "out" / "a.html").read_text("utf-8")


FAULTS = {
    "anchor": ("[there](#nowhere)", "nowhere"),
    "anchor-elsewhere": ("[there](index.md#nowhere)", "nowhere"),
    "page": ("[there](gone.md)", "gone.md"),
    "picture": ("![there](gone.png)", "gone.png"),
    "unlisted": ("no list names this page", "toctree"),
}
"""A page for each fault: its text, and what the build says of it."""


def test_what_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    index = "# Index\n\n## One\n\n" + "".join(f"- [A]({name}.md)\n" for name in FAULTS if name != "unlisted")
    write(tmp_path, index=index, **{name: f"# A\n\n{text}\n" for name, (text, _) in FAULTS.items()})
    done = build(tmp_path)
    assert done.returncode == 1
    said = dict(re.findall(r"/([a-z-]+)\.md.* WARNING: (.*)", done.stderr))
    assert [name for name, (_, words) in FAULTS.items() if words not in said.get(name, "")] == [], done.stderr
