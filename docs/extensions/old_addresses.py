"""Keeps old addresses of the site working: each leads to the page, and to the heading, that has its text now."""

from pathlib import Path
from typing import Any

MOVED = {
    "cutover": "application.html#the-command-rowferry-cutover",
    "errors": "troubleshooting.html#find-errors-and-retry",
    "running": "commands.html",
    "adr/README": "evidence.html",
    "architecture": "evidence.html",
    "compliance": "evidence.html",
    "speed-figures": "evidence.html",
    "sweep": "evidence.html",
}
"""What was a page once, and where its text is."""

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Moved</title>
<meta http-equiv="refresh" content="0; url={target}">
<link rel="canonical" href="{target}">
<p>This page has moved to <a href="{target}">{target}</a>.</p>
"""


def write_pages(site: Path) -> None:
    """Write a page at each old address that sends a browser on."""
    for name, target in MOVED.items():
        path = site / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(PAGE.format(target="../" * name.count("/") + target), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write them when the site is built, and only then: a man page has no address."""

    def finish(_app: Any, failure: Exception | None) -> None:
        if failure is None and app.builder.name == "html":
            write_pages(Path(app.outdir))

    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
