"""The project's Markdown pages as the tests of the docs read them: blocks, commands, links, code in prose, tables."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.checkout import ROOT

PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)

SHELLS = {"sh", "bash", "console"}

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> list[list[str]]:
        """Return the simple commands of a block for a shell, words split; of a session, what follows `$ `."""
        text = self.text
        if self.language == "console":
            text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
        return [words for line in text.replace("\\\n", " ").splitlines() for words in split_line(line)]


def split_line(line: str) -> Iterator[list[str]]:
    """Yield the simple commands of one line: without comments, redirections and assignments."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    reader.whitespace_split = True
    words: list[str] = []
    skip = False
    for word in [*reader, ";"]:
        if set(word) <= set(";&|"):
            if words:
                yield words
            words = []
        elif set(word) <= set("<>"):
            skip = True
        elif skip:
            skip = False
        elif words or not _ASSIGNMENT.match(word):
            words.append(word)


def read_blocks(*languages: str, pages: list[Path] = PAGES) -> list[Block]:
    """Return the fenced blocks in any of the languages."""
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found["language"], strip_indent(found))
        for page in pages
        for text in [page.read_text(encoding="utf-8")]
        for found in _FENCE.finditer(text)
        if not languages or found["language"] in languages
    ]


def read_plan_document(block: Block) -> dict[str, Any]:
    """Return the plan in a block; what a page leaves out of it because it matters not there is filled in."""
    shown = tomllib.loads(block.text)
    if "migration" in shown:
        return shown
    sides = {side: {"bucket": side, **shown.pop(side, {})} for side in ("legacy", "production")}
    return {"migration": {"name": "shown"}, **sides, **shown}


def strip_indent(found: re.Match[str]) -> str:
    indent = len(found["indent"])
    return "".join(line[indent:] for line in found["text"].splitlines(keepends=True))


def read_prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def list_code() -> list[tuple[Path, str]]:
    """Return what stands between single backticks in the prose of all pages, each with its page."""
    return [(page, " ".join(code.split())) for page in PAGES for code in re.findall(r"`([^`]+)`", read_prose(page))]


def read_links(page: Path) -> list[str]:
    """Return the targets of the links of a page, those of pictures in HTML included."""
    prose = read_prose(page)
    return re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(r'\b(?:src|srcset|href)="([^"\s]+)"', prose)


def read_anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", read_prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def read_section(page: Path, heading: str) -> str:
    """Return the text below a heading, up to the next one of its level or above."""
    text = page.read_text(encoding="utf-8")
    level, start = next(
        (len(found[1]), found.end()) for found in re.finditer(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    )
    end = re.compile(rf"^#{{1,{level}}} ", re.MULTILINE).search(text, start)
    return text[start : end.start() if end else len(text)]


def is_in_section(block: Block, heading: str) -> bool:
    return block.text in read_section(block.page, heading)


def read_table(page: Path, heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading, without its head."""
    lines = [line for line in read_section(page, heading).splitlines() if line]
    start = next(index for index, line in enumerate(lines) if line.startswith("| ---"))
    rows: list[list[str]] = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows
