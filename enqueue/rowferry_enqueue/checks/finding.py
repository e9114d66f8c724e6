"""One line of what `rowferry check` reports: a problem, a note, or that something is fine."""

from dataclasses import dataclass
from typing import Literal

from rowferry.errors import UsageError

SHOWN_CHARACTERS = 60
"""Of a key in a message."""
Level = Literal["problem", "note", "fine"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is a clause without a full stop; `remedy` says what to do, and is empty where `what` says it."""

    level: Level
    what: str
    remedy: str = ""


def problem(what: object, remedy: str = "") -> Finding:
    return Finding("problem", str(what).rstrip("."), remedy)


def note(what: object, remedy: str = "") -> Finding:
    return Finding("note", str(what).rstrip("."), remedy)


def fine(what: str) -> Finding:
    return Finding("fine", what)


def quote_key(key: str) -> str:
    """Return a key in quotes, shortened in the middle."""
    half = SHOWN_CHARACTERS // 2
    return repr(key if len(key) <= SHOWN_CHARACTERS else f"{key[:half]}…{key[-half:]}")


def as_error(finding: Finding) -> UsageError:
    """Return a problem as the one sentence that ends a command."""
    words = f"{finding.what}; {finding.remedy}" if finding.remedy else finding.what
    return UsageError(f"{words[:1].upper()}{words[1:]}.")
