"""Paragraphs, blocks and tables of Markdown that forges and Sphinx show alike."""

import re
import textwrap
from collections.abc import Iterable

WIDTH = 120
_WHOLE = re.compile(r"`[^`]+`|\[[^\]]+\]\([^)]+\)")
_SPECIAL = re.compile(r"([*<\[\]])")


def escape(text: str) -> str:
    """Return text outside of code with its special characters escaped."""
    return _SPECIAL.sub(r"\\\1", text)


def fill(text: str) -> str:
    """Return a paragraph in lines of the pages' width; neither code nor a link is cut at its blanks."""
    protected = _WHOLE.sub(lambda found: found[0].replace(" ", "\0"), " ".join(text.split()))
    lines = textwrap.fill(protected, WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def block(lines: Iterable[str], language: str = "text") -> str:
    """Return a fenced block of lines, without the indentation that they share."""
    return f"```{language}\n{textwrap.dedent(chr(10).join(lines)).strip(chr(10))}\n```"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table; a bar in a cell is escaped."""
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in cells)
