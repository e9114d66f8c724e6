"""One line of what `rowferry check` reports: a problem, a part that would not move, a note, or what is fine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rowferry.errors import UsageError

SHOWN_CHARACTERS = 60
"""Of a key in a message."""
Level = Literal["problem", "part", "note", "fine"]
"""With a problem nothing is migrated; a part is what would be left when all else has moved."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is a clause without a full stop; `remedy` says what to do, and is empty where `what` says it."""

    level: Level
    what: str
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """Return it in one sentence."""
        return f"{self.what}; {self.remedy}." if self.remedy else f"{self.what}."


def problem(what: object, remedy: str = "") -> Finding:
    return Finding("problem", str(what).rstrip("."), remedy)


def part(what: object, remedy: str = "") -> Finding:
    return Finding("part", str(what).rstrip("."), remedy)


def note(what: object, remedy: str = "") -> Finding:
    return Finding("note", str(what).rstrip("."), remedy)


def fine(what: str) -> Finding:
    return Finding("fine", what)


def quote_key(key: str) -> str:
    """Return a key in quotes, shortened in the middle."""
    half = SHOWN_CHARACTERS // 2
    return repr(key if len(key) <= SHOWN_CHARACTERS else f"{key[:half]}…{key[-half:]}")


def find_problems(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "problem"]


def as_error(finding: Finding) -> UsageError:
    """Return a problem as the one sentence that ends a command."""
    return UsageError(f"{finding.sentence[:1].upper()}{finding.sentence[1:]}")


def refuse_first(findings: Iterable[Finding]) -> None:
    """Raise UsageError for the first problem."""
    for finding in find_problems(findings):
        raise as_error(finding)
