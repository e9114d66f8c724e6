"""Pages of `rowferry report --html` to test with: written by the command, read as a tree of elements."""

import os
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from support.processes.cli import run_rowferry

UNCLOSED = re.compile(r"<(meta|link)\b([^>]*?)/?>")
"""What HTML lets end by itself, and XML does not."""


class Element(NamedTuple):
    """One element: its name, attributes, and all text in it."""

    name: str
    attributes: dict[str, str]
    text: str


class PageReader:
    """Reads a page; each element is closed in its turn, or it is no page."""

    def __init__(self, text: str) -> None:
        _, _, page = text.partition(">")  # behind the doctype
        root = ElementTree.fromstring(UNCLOSED.sub(r"<\1\2/>", page))
        self.elements = [Element(one.tag, one.attrib, "".join(one.itertext())) for one in root.iter()]

    def find(self, name: str, **attributes: str) -> list[Element]:
        """Return the elements of a name that have these attributes (`class_` is `class`)."""
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element.name == name and wanted.items() <= element.attributes.items()
        ]

    def rows(self, caption: str) -> list[list[str]]:
        """Return the cells of the rows of the table whose caption begins so, without its head."""
        inside, found = False, list[list[str]]()
        for element in self.elements:
            if element.name == "caption":
                inside = element.text.startswith(caption)
            elif inside and element.name == "tbody":
                found = []
            elif inside and element.name == "tr":
                found.append([])
            elif inside and element.name in {"td", "th"} and element.attributes.get("scope") != "col":
                found[-1].append(" ".join(element.text.split()))
        assert found, f"no table {caption}"
        return [row for row in found if row]

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join(self.find("html")[0].text.split())


def write_page(dsn: str, folder: Path, *arguments: str, expected: int, **environment: str) -> PageReader:
    """Run the command and return the page that it wrote."""
    path = folder / "page.html"
    done = run_rowferry(
        ["report", "--html", str(path), *arguments], {**os.environ, "DATABASE_URL": dsn, **environment}, folder
    )
    assert done.returncode == expected, done.stdout + done.stderr
    assert f"Page: {path}\n" in done.stdout
    return PageReader(path.read_text(encoding="utf-8"))
