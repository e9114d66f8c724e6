"""Views and functions as the comments at the head of their files tell of them."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from references.words import WIDTH, block, fill, mark_comment
from rowferry.db.statements import HEAD_INDENT, list_sql, read_head

_SIGNATURE = re.compile(r"create or replace function (rowferry\.\w+\(.*?\)\nreturns .*?)\nlanguage", re.DOTALL)
_LABEL = re.compile(r"(^|\. )(Writes|Called by): ")
_STARTS = re.compile(r"(?:Writes|Called by|Raises|Returns)\b")


@dataclass(frozen=True, slots=True)
class Head:
    """A view or a function."""

    name: str
    lines: list[str]
    """Of the comment, below the name."""
    signature: str
    """Of a function, with the type it returns; empty for a view."""

    @property
    def is_trigger(self) -> bool:
        """Return whether only a trigger calls it."""
        return self.signature.endswith("returns trigger")


def read_heads(folder: str) -> list[Head]:
    """Return all of `views` or `functions`, by name."""
    return [read_view_or_function(path) for path in list_sql(folder)]


def read_view_or_function(path: Path) -> Head:
    """Return what a file says at its head, and a function's signature."""
    signature = _SIGNATURE.search(path.read_text(encoding="utf-8"))
    return Head(path.stem, read_head(path), signature[1] if signature else "")


def write_head(head: Head, link: Callable[[str], str]) -> Iterator[str]:
    """Yield the paragraphs of a comment; lines that are indented stay as they are."""
    for is_verbatim, lines in groupby(head.lines, key=lambda line: line.startswith(" ")):
        if is_verbatim:
            yield block(lines)
            continue
        for paragraph in split_paragraphs(lines):
            yield fill(_LABEL.sub(r"\1**\2:** ", mark_comment(paragraph, link)))


def split_paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Yield paragraphs: one ends where the first word of the next line would have fitted."""
    paragraph: list[str] = []
    for line in lines:
        if paragraph and _begins(line, paragraph[-1]):
            yield " ".join(paragraph)
            paragraph = []
        paragraph.append(line)
    if paragraph:
        yield " ".join(paragraph)


def _begins(line: str, before: str) -> bool:
    if _STARTS.match(line) and before.endswith((".", ":")):
        return True
    word = line.split(" ", 1)[0]
    return before.endswith((".", ":", ";")) and len(f"{HEAD_INDENT}{before} {word}") <= WIDTH - 2
