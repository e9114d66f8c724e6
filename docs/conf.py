"""The site of the docs: `make docs` builds it strictly, so that each warning of Sphinx is an error."""

import sys
import tomllib
from pathlib import Path
from typing import Any

from pygments.lexers.sql import PsqlRegexLexer

from rowferry import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "extensions"))

from forge_pages import NOT_ON_THE_SITE  # noqa: E402

_project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _project["name"]
author = _project["authors"][0]["name"]
version = release = __version__
project_copyright = author

extensions = ["forge_pages", "myst_parser", "sphinx_copybutton"]
exclude_patterns = ["extensions", "man", *NOT_ON_THE_SITE]
nitpicky = True

# Anchors as forges make them, so that a link works there and here.
myst_heading_anchors = 6
myst_enable_extensions = ["html_image"]

html_theme = "furo"
smartquotes = False

html_use_index = False
html_title = f"{project} {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_theme_options = {
    "source_repository": _project["urls"]["Homepage"],
    "source_branch": "main",
    "source_directory": "docs/",
    "light_css_variables": {"color-brand-primary": "#0b5e6b", "color-brand-content": "#0b5e8a"},
    "dark_css_variables": {"color-brand-primary": "#6cc7d3", "color-brand-content": "#79b8e8"},
}
html_show_sourcelink = False
html_copy_source = False

# What a reader copies from a session is what was typed, without prompts and answers.
copybutton_prompt_text = r"\$ |[\w-]+=[>#] "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"


def give_captions_a_level(_app: Any, _page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Say of the sidebar's captions which level of heading they are: a screen reader asks for it."""
    navigation: str = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = navigation.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Any) -> None:
    """Colour SQL as PostgreSQL and psql read it: with dollar quotes and meta-commands."""
    app.add_lexer("sql", PsqlRegexLexer)
    app.connect("html-page-context", give_captions_a_level, priority=900)
