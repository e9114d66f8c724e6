"""One line of what `rowferry check` reports: a problem, a note, or that something is fine."""

from dataclasses import dataclass
from typing import Literal

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
