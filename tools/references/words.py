"""Plain text of help texts and comments as Markdown that forges and Sphinx show alike."""

import re
import textwrap
from collections.abc import Callable, Iterable

WIDTH = 120
"""Of the pages, and of the comments that they are made of."""

_CODE = re.compile(r"(`[^`]+`)")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*(?![\w-])")
_VARIABLE = re.compile(r"\b[A-Z]+_[A-Z_*]+")
_FILE = re.compile(r"(?<![\w/])[\w/]+\.(?:py|sql|toml)\b")
_NAME = re.compile(r"\browferry\.\w+(?:\.\w+)*")
_WORD = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\[\[\w+\]\]")
_SPECIAL = re.compile(r"([*<\[\]])")
_WHOLE = re.compile(r"`[^`]+`|\[[^\]]+\]\([^)]+\)")


def escape(text: str) -> str:
    """Return text outside of code with its special characters escaped."""
    return _SPECIAL.sub(r"\\\1", text)


def mark(text: str, *patterns: re.Pattern[str], show: Callable[[str], str] = lambda found: f"`{found}`") -> str:
    """Return a text in which what matches a pattern is shown as code (or by `show`), and the rest is escaped."""
    for pattern in patterns:
        text = _outside_code(text, lambda part, pattern=pattern: pattern.sub(lambda found: f"`{found[0]}`", part))
    parts = _CODE.split(text)
    return "".join(show(part[1:-1]) if _CODE.fullmatch(part) else escape(part) for part in parts)


def mark_help(text: str) -> str:
    """Return a help text with options, variables and files as code."""
    return mark(text, _OPTION, _VARIABLE, _FILE)


def mark_comment(text: str, show: Callable[[str], str]) -> str:
    """Return a comment of SQL with files and names as code; `show` may make a link of them."""
    return mark(text, _FILE, _NAME, _WORD, show=show)


def fill(text: str, first: str = "", rest: str = "") -> str:
    """Return a paragraph in lines of the pages' width; neither code nor a link is cut at its blanks."""
    protected = _WHOLE.sub(lambda found: found[0].replace(" ", "\0"), " ".join(text.split()))
    lines = textwrap.fill(
        protected, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def block(lines: Iterable[str], language: str = "text") -> str:
    """Return a fenced block of lines, without the indentation that they share."""
    return f"```{language}\n{textwrap.dedent(chr(10).join(lines)).strip(chr(10))}\n```"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table; a bar in a cell is escaped."""
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in cells)


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    return "".join(part if _CODE.fullmatch(part) else change(part) for part in _CODE.split(text))
