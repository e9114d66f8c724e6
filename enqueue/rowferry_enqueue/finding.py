"""What a check found: a problem, a note, or that something is fine."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["problem", "note", "fine"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the check-list."""

    level: Level
    what: str
    remedy: str = ""
    """What to do about a problem; empty where `what` says it or nothing can be done."""


def problem(what: object, remedy: str = "") -> Finding:
    """Return a finding that stands in the way."""
    return Finding("problem", str(what).rstrip("."), remedy)


def note(what: object, remedy: str = "") -> Finding:
    """Return a finding that is good to know."""
    return Finding("note", str(what).rstrip("."), remedy)


def fine(what: str) -> Finding:
    """Return a finding that all is well."""
    return Finding("fine", what)
