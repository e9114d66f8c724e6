"""Which skips a run may have: the entries of tests/skips.toml."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from support.checkout import ROOT

LIST = ROOT / "tests" / "skips.toml"
NOT_RUN = ROOT / ".tools" / "not-run"
"""A file for each part that could not be installed, named after it; its text says why. Written by tools/not-run."""


@dataclass(frozen=True, slots=True)
class AllowedSkip:
    """An entry of the list. `reason` and `tests` are patterns as of a shell."""

    reason: str
    why: str
    tests: str = "tests/*"
    part: str = ""

    @property
    def may_be(self) -> bool:
        """Return whether it is no part that a tool installs, or the tool that tried has failed here."""
        return not self.part or read_why_not_run(self.part) is not None

    def is_about(self, nodeid: str, reason: str) -> bool:
        return fnmatchcase(reason, self.reason) and fnmatchcase(nodeid, self.tests)


def read_allowed_skips() -> tuple[AllowedSkip, ...]:
    """Return the entries. Raises TypeError for a field too many or too few."""
    return tuple(AllowedSkip(**entry) for entry in tomllib.loads(LIST.read_text(encoding="utf-8"))["skip"])


def find_entry(entries: Iterable[AllowedSkip], nodeid: str, reason: str) -> AllowedSkip | None:
    """Return the entry that is about a skip; None when there is none."""
    return next((entry for entry in entries if entry.is_about(nodeid, reason)), None)


def read_why_not_run(part: str) -> str | None:
    """Return why a part could not be installed, as the tool that tried has written it; None when it wrote nothing."""
    try:
        return (NOT_RUN / part).read_text(encoding="utf-8").strip() if part else None
    except FileNotFoundError:
        return None
