"""Renders the page as one HTML file that needs nothing else: no script, no font, no image from elsewhere."""

import os
import shutil
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rowferry_cli.report.build import build_page
from rowferry_cli.report.facts import Facts
from rowferry_cli.report.hide import clean, find_secrets
from rowferry_cli.report.model import Page
from rowferry_cli.report.svg import draw_marks, draw_pace, draw_shares

TEMPLATES = Path(__file__).parent / "templates"


def write_page(path: Path, facts: Facts, environ: Mapping[str, str]) -> None:
    """Write the page of a migration; the secrets of `environ` are hidden wherever they are. Raises OSError."""
    secrets = find_secrets(environ)
    page = render_page(build_page(facts, partial(clean, secrets=secrets)), secrets)
    write_whole(path, page)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there once it is whole: one of the same name is replaced only then. Raises OSError.

    A link stays a link to the file that is replaced, which keeps its mode; a new file is for its owner
    alone. A pipe or a device is written to.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unfinished.touch(mode=0o600)  # it holds keys and error texts
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def render_page(page: Page, secrets: Collection[str] = ()) -> str:
    """Return the HTML of a page; each text in it is cleaned, and then escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=partial(_finalize, secrets=secrets),
    )
    drawings = {"draw_pace": draw_pace, "draw_marks": draw_marks, "draw_shares": draw_shares}
    return environment.get_template("page.html", globals=drawings).render(page=page)


def _finalize(value: Any, secrets: Collection[str]) -> Any:
    """Return what is put in the place of an expression: drawn SVG as it is, numbers with separators, text cleaned."""
    if isinstance(value, Markup):
        return value
    return f"{value:,}" if isinstance(value, int) else clean(str(value), secrets)
