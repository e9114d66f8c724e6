"""`make references` writes docs/{commands,functions,metrics,views}.md; `make man` the sources of the man pages."""

import json
import os
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from references import command_pages, metrics_page, sql_pages
from rowferry.db.connection import Connection, connect
from rowferry.db.schema import initialise
from rowferry_lab.servers.postgres import EmbeddedPostgres

DOCS = Path("docs")
NOTE = "<!-- Written by `make references` from {source}. Change that instead. -->"
WRITTEN_ABOVE = {"commands"}
"""Pages of which only the part below the note is written here."""
ORPHAN = "---\norphan: true\n---\n\n"
"""Tells Sphinx that no list of pages names a page."""


def write_pages(connection: Connection) -> dict[str, str]:
    """Return the text of each page by its name. The connection is to a database that knows rowferry."""
    pages: dict[str, tuple[str, Iterable[str]]] = {
        "commands": ("the help of the commands", command_pages.write_page()),
        "functions": ("the heads of sql/functions", sql_pages.write_functions()),
        "metrics": ("the metrics' own help texts", metrics_page.write_page()),
        "views": ("the heads of sql/views", sql_pages.write_views(connection)),
    }
    return {name: "\n\n".join([*insert_note(name, source, parts)]) + "\n" for name, (source, parts) in pages.items()}


def insert_note(name: str, source: str, paragraphs: Iterable[str]) -> Iterable[str]:
    """Yield the paragraphs of a page with a note: below the title, or below what is written by hand."""
    note = NOTE.format(source=source)
    if name in WRITTEN_ABOVE:
        by_hand, _, _ = (DOCS / f"{name}.md").read_text(encoding="utf-8").partition(note)
        return [by_hand.rstrip(), note, *paragraphs]
    title, *rest = paragraphs
    return [title, note, *rest]


def write_references() -> None:
    """Write the pages, with a PostgreSQL of the lab."""
    with EmbeddedPostgres() as server:
        os.environ["DATABASE_URL"] = server.dsn()
        with connect("references", autocommit=True) as connection:
            initialise(connection)
            for name, text in write_pages(connection).items():
                (DOCS / f"{name}.md").write_text(text, encoding="utf-8")


def write_man_sources(folder: Path) -> None:
    """Write a Markdown file for each man page, and what docs/man/conf.py needs to know of them."""
    folder.mkdir(parents=True, exist_ok=True)
    urls = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    summaries: dict[str, str] = {}
    for name, summary, text in command_pages.write_man_pages(urls["Documentation"]):
        (folder / f"{name}.md").write_text(f"{ORPHAN}{text}\n", encoding="utf-8")
        summaries[name] = summary.rstrip(".")
    (folder / "summaries.json").write_text(json.dumps(summaries), encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            write_references()
        case ["man", folder]:
            write_man_sources(Path(folder))
        case _:
            sys.exit(__doc__)
