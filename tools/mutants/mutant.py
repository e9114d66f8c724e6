"""One changed place of one file."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

MOST_SHOWN = 60
"""Characters of a mutation that are shown of each side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A file with one place changed."""

    path: str
    """Of the file, below the checkout."""
    line: int
    last_line: int
    column: int
    operator: str
    before: str
    after: str
    source: str
    """The line as it is without the mutation."""
    write: Callable[[], str]
    """Return the file's text with the mutation."""

    @property
    def place(self) -> str:
        """Return what names the mutant as long as the file does not change."""
        return f"{self.path}:{self.line}:{self.column} {self.operator}: {self.before} -> {self.after}"

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Return what names it in equivalent.toml, wherever the line stands."""
        return self.path, self.source, self.before, self.after

    @property
    def label(self) -> str:
        """Return the same for people, cut."""
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path}:{self.line} {self.operator}: {shorten(before)} -> {shorten(after) or '(nothing)'}"


def shorten(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def digest(*paths: Path) -> str:
    """Return what changes when one of these files does, or their list."""
    found = sha256()
    for path in sorted(paths):
        content = path.read_bytes() if path.exists() else b""
        found.update(f"{path.name} {len(content)} ".encode() + content)
    return found.hexdigest()[:16]
