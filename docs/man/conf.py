"""The man pages: `make man` writes their Markdown into build/man-pages, and Sphinx makes build/man of it."""

import json
import tomllib
from pathlib import Path
from typing import Any

from rowferry import __version__

ROOT = Path(__file__).parents[2]

_project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_summaries = json.loads((ROOT / "build" / "man-pages" / "summaries.json").read_text(encoding="utf-8"))

NO_HYPHENS = ".nr HY 0\n.hy 0\n"
"""For what follows, and for each section, where the macros set it anew."""

project = _project["name"]
version = release = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
nitpicky = True
smartquotes = False
root_doc = "rowferry"
suppress_warnings = ["toc.not_included"]
man_pages = [(name, name, summary, _project["authors"][0]["name"], 1) for name, summary in _summaries.items()]


def setup(app: Any) -> None:
    """Keep roff from hyphenating: a variable that is cut at the end of a line cannot be copied."""

    def stop_hyphenation(_app: Any, _failure: Exception | None) -> None:
        for page in Path(app.outdir).glob("*.1"):
            lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
            title = next(number for number, line in enumerate(lines) if line.startswith(".TH"))
            page.write_text("".join([*lines[: title + 1], NO_HYPHENS, *lines[title + 1 :]]), encoding="utf-8")

    app.connect("build-finished", stop_hyphenation)
