"""`make references` writes six pages of docs/, `make man` the man pages' sources."""

import json
import os
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from references import commands, metrics_page, providers_page, refusals_page, sql_pages
from rowferry.db.connection import Connection, connect
from rowferry.db.schema import initialise
from rowferry_lab.servers.postgres import EmbeddedPostgres

DOCS = Path("docs")
NOTE = "<!-- Written by `make references` from {source}. Change that instead. -->"


def write_pages(connection: Connection) -> dict[str, str]:
    """Return the text of each page by its name. The connection is to a database that knows rowferry."""
    pages: dict[str, tuple[str, Iterable[str]]] = {
        "commands": ("the help of the commands", commands.write_page()),
        "functions": ("the heads of sql/functions", sql_pages.write_functions()),
        "metrics": ("the metrics' own help texts", metrics_page.write_page()),
        "providers": ("rowferry/s3/providers.toml", providers_page.write_page()),
        "refusals": ("rowferry/s3/refusals.toml", refusals_page.write_page()),
        "views": ("the heads of sql/views", sql_pages.write_views(connection)),
    }
    return {
        name: "\n\n".join([read_above(name), NOTE.format(source=source), *below]) + "\n"
        for name, (source, below) in pages.items()
    }


def read_above(name: str) -> str:
    """Return what is written by hand on a page, above the note."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8").partition(NOTE.partition("{")[0])[0].rstrip()


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
    for name, summary, text in commands.write_man_pages(urls["Documentation"]):
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
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
