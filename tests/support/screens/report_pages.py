"""Pages of `rowferry report --html` to test with: written by the command, read as a tree of elements."""

import os
from html.parser import HTMLParser
from pathlib import Path

from support.processes.cli import run_rowferry

VOID = {"meta", "link"}


class Element:
    """One element: its name, attributes, and all text in it."""

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name, self.attributes = name, attributes
        self.text = ""


class PageReader(HTMLParser):
    """Reads a page; each element is closed in its turn, or it is no page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open, [one.name for one in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().name == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

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
